// Writes a picture (picture.h) to the file that a user names: .svg as it is, .png through the program rsvg-convert.
#pragma once

#include <filesystem>
#include <string>

namespace kvscope::labs {

// InputError for another extension, and for .png where rsvg-convert is not installed.
void check_picture_file(const std::filesystem::path& file);

// A .png has two pixels for each of the SVG's. InputError when the file cannot be written.
void write_picture_file(const std::filesystem::path& file, const std::string& svg);

}  // namespace kvscope::labs
