// The layout of a zip archive, checked byte by byte before any member is unpacked. libzip and Python's zipfile look for
// the directory from the end of the file and follow its offsets: bytes that no offset names, and local headers that
// differ from the directory, pass unseen. Here every byte of the archive must belong to exactly one record:
//
//   [local header, name, extra fields][data][data descriptor]   one for each member, without gap or overlap
//   [central directory]
//   [zip64 end record][zip64 locator]                           both or none
//   [end record]                                                22 bytes, without a comment
//
// Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7 to 4.3.16 and 4.5.3.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/errors.h"

namespace kvscope::golden {

// Adds to `faults`: bytes before, between or behind the records; overlaps; two members of one name; a local header or
// data descriptor that differs from the directory in name, flags, method, checksum or sizes; counts and offsets that do
// not agree; several disks.
void check_zip_layout(std::string_view archive, std::vector<Fault>& faults);

}  // namespace kvscope::golden
