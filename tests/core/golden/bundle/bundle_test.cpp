#include "core/golden/bundle/bundle.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/golden/bundle/bundle_file.h"
#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/bundle/npz_bundle.h"
#include "core/golden/bundle/safetensors.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::bundle_test {
namespace {

Bundle small_bundle() {
  Bundle bundle;
  bundle.tensors.emplace("k", tensor_of<bf16>({1, 2}, std::array{bf16{0x3f80}, bf16{0x4000}}));
  bundle.tensors.emplace("lse", tensor_of<double>({1}, std::array{0.5}));
  bundle.manifest.set("layout", "nhd");
  bundle.manifest.set("seed", 7);
  return bundle;
}

class BundleFormat : public testing::TestWithParam<const char*> {};

TEST_P(BundleFormat, ComesBackWithItsManifestAndChecksums) {
  const TempFolder folder;
  const json::Value written = save_bundle(folder / GetParam(), small_bundle());
  const Bundle back = load_bundle(folder / GetParam());
  EXPECT_EQ(back.tensors, small_bundle().tensors);
  EXPECT_EQ(back.manifest, written);
  // crc32 from Python: zlib.crc32(bytes.fromhex('803f0040')), zlib.crc32(struct.pack('<d', 0.5))
  EXPECT_EQ(
      json::dump(back.manifest, -1),
      R"({"kvscope_bundle":2,"layout":"nhd","seed":7,"tensors":{"k":{"dtype":"bf16","shape":[1,2],"crc32":"95f68a1a"},)"
      R"("lse":{"dtype":"f64","shape":[1],"crc32":"8d3a01b8"}},"manifest_crc32":"4585c41a"})");
}

TEST_P(BundleFormat, EqualBundlesGiveEqualFiles) {
  const TempFolder folder;
  save_bundle(folder / GetParam(), small_bundle());
  const std::string first = slurp(folder / GetParam());
  Bundle loaded = load_bundle(folder / GetParam());
  save_bundle(folder / GetParam(), loaded);
  EXPECT_EQ(slurp(folder / GetParam()), first);
  EXPECT_EQ(folder.files(), 1u);
}

// The container's checks pass here: the file is valid, and only the manifest shows that the tensor was replaced.
TEST_P(BundleFormat, AChangedTensorIsFoundByItsChecksum) {
  const TempFolder folder;
  Bundle bundle = small_bundle();
  bundle.manifest = save_bundle(folder / GetParam(), bundle);
  values<double>(bundle.tensors.at("lse"))[0] = 0.25;
  const std::string path = (folder / GetParam()).string();
  write_file_atomically(path,
                        path.ends_with("npz")
                            ? npz_bytes(bundle.tensors, bundle.manifest)
                            : safetensors_bytes({bundle.tensors, {{"kvscope", json::dump(bundle.manifest, -1)}}}));
  EXPECT_EQ(message_of([&] { static_cast<void>(load_bundle(path)); }),
            path +
                " rejected: tensor 'lse': the manifest says crc32 \"8d3a01b8\", the file has \"527c374b\": the file "
                "was changed or damaged");
}

INSTANTIATE_TEST_SUITE_P(EveryEnding, BundleFormat, testing::Values("b.safetensors", "b.npz"),
                         [](const auto& param) { return std::string(param.param + 2); });

std::string manifest_rejection(const std::string& manifest) {
  Bundle bundle = small_bundle();
  bundle.manifest = json::parse(manifest, "test");
  return message_of([&] { verify_manifest(bundle, "b.npz"); });
}

// A program that writes its files itself writes what save_bundle() writes, and no manifest that load_bundle() rejects.
TEST(Bundle, TheBytesOfAnNpzAreThoseOfTheFile) {
  const TempFolder folder;
  save_bundle(folder / "a.npz", small_bundle());
  EXPECT_EQ(npz_bundle_bytes(small_bundle()), slurp(folder / "a.npz"));
  Bundle unknown = small_bundle();
  unknown.manifest.set("layuot", "nhd");
  EXPECT_THROW((void)npz_bundle_bytes(unknown), InputError);
}

TEST(Bundle, ManifestsThatDoNotMatchAreRejectedByName) {
  EXPECT_EQ(
      manifest_rejection(R"({"kvscope_bundle": 3})"),
      "b.npz rejected: manifest: bundle version 3 is newer than 2, the newest this program reads: update kvscope");
  EXPECT_EQ(manifest_rejection(R"({"kvscope_bundle": 0})"),
            "b.npz rejected: manifest: 'kvscope_bundle', the format version, is missing or not a positive integer");
  EXPECT_EQ(manifest_rejection(R"([])"),
            "b.npz rejected: manifest: 'kvscope_bundle', the format version, is missing or not a positive integer");
  EXPECT_EQ(
      manifest_rejection(R"({"kvscope_bundle": 1})"),
      "b.npz rejected: manifest: 'tensors', the list of types, shapes and checksums, is missing or not an object");
  EXPECT_EQ(
      manifest_rejection(
          R"({"kvscope_bundle": 1, "tensors": {"k": {"dtype": "f16", "shape": [2], "crc32": "95f68a1a"}, "q": {}}})"),
      "b.npz rejected, 4 faults:\n"
      "  tensor 'k': the manifest says dtype \"f16\", the file has \"bf16\"\n"
      "  tensor 'k': the manifest says shape [2], the file has [1,2]\n"
      "  tensor 'q': the manifest lists it, the file does not have it\n"
      "  tensor 'lse': the file has it, the manifest does not list it");
}

// Each value of another kind than the format gives it.
TEST(Bundle, ManifestsOfAnotherShapeAreRejected) {
  const std::string version =
      "b.npz rejected: manifest: 'kvscope_bundle', the format version, is missing or not a positive integer";
  for (const char* text : {R"({"kvscope_bundle": "1"})", R"({"kvscope_bundle": 1.0})", R"({})"}) {
    EXPECT_EQ(manifest_rejection(text), version);
  }
  EXPECT_EQ(
      manifest_rejection(R"({"kvscope_bundle": 1, "tensors": []})"),
      "b.npz rejected: manifest: 'tensors', the list of types, shapes and checksums, is missing or not an object");
  EXPECT_THAT(manifest_rejection(R"({"kvscope_bundle": 1, "manifest_crc32": 7, "tensors": {}})"),
              testing::ContainsRegex("^b.npz rejected: manifest: manifest_crc32 is 7, but the manifest has "
                                     "\"[0-9a-f]{8}\": the file was changed or damaged$"));
  EXPECT_EQ(manifest_rejection(R"({"kvscope_bundle": 1, "tensors": {"k": 7, "lse": {"dtype": "f64", "shape": [1]}}})"),
            "b.npz rejected, 4 faults:\n"
            "  tensor 'k': the manifest does not give its dtype\n"
            "  tensor 'k': the manifest does not give its shape\n"
            "  tensor 'k': the manifest does not give its crc32\n"
            "  tensor 'lse': the manifest does not give its crc32");
  Bundle bundle = small_bundle();
  bundle.manifest = json::parse(R"({"kvscope_bundle": "1"})", "test");
  EXPECT_EQ(manifest_note(bundle), "");
}

// Programs of others keep texts of their own beside the manifest.
TEST(Bundle, OtherMetadataOfASafetensorsIsLeftAlone) {
  const TempFolder folder;
  spit(folder / "b.safetensors", safetensors_bytes({small_bundle().tensors, {{"format", "pt"}, {"note", "mine"}}}));
  const Bundle bundle = load_bundle(folder / "b.safetensors");
  EXPECT_EQ(bundle.tensors, small_bundle().tensors);
  EXPECT_TRUE(bundle.manifest.is_null());
}

TEST(Bundle, FilesThatAreMissingEmptyOrTooLongAreRejected) {
  const TempFolder folder;
  const auto loaded = [&](const char* name) {
    const std::string path = (folder / name).string();
    const std::string message = message_of([&] { static_cast<void>(load_bundle(path)); });
    EXPECT_TRUE(message.starts_with(path)) << message;
    return message.substr(std::min(path.size(), message.size()));
  };
  for (const char* name : {"b.npz", "b.npy", "b.safetensors"}) {
    EXPECT_EQ(loaded(name), " rejected: cannot be read: No such file or directory");
    std::filesystem::create_directory(folder / name);
    EXPECT_EQ(loaded(name), " rejected: is a folder: name a file in it");
    std::filesystem::remove(folder / name);
    spit(folder / name, "");
    std::filesystem::resize_file(folder / name, (std::uintmax_t{64} << 30) + 1);
    EXPECT_EQ(loaded(name),
              " rejected: 68719476737 bytes, but at most 68719476736 are read: split it or give a smaller one");
    std::filesystem::resize_file(folder / name, 0);
  }
  EXPECT_EQ(loaded("b.npz"), " rejected: empty: not a zip archive");
  EXPECT_EQ(loaded("b.npy"), " rejected: does not begin with \\x93NUMPY: not an npy file; write it with numpy.save");
  EXPECT_EQ(loaded("b.safetensors"), " rejected: 0 bytes long; the header's length alone takes 8: truncated");
}

TEST(Bundle, AVersionWithoutAChecksumOfItsManifestOpensWithANote) {
  Bundle bundle = small_bundle();
  bundle.manifest = json::parse(
      R"({"kvscope_bundle": 1, "layout": "nhd", "tensors": {)"
      R"("k": {"dtype": "bf16", "shape": [1, 2], "crc32": "95f68a1a"}, "lse": {"dtype": "f64", "shape": [1], "crc32": "8d3a01b8"}}})",
      "test");
  verify_manifest(bundle, "b.npz");
  EXPECT_EQ(manifest_note(bundle),
            "bundle version 1 has no checksum of its manifest, so damage to its conventions is not detected: write the "
            "file again with this version of kvscope");
  const TempFolder folder;
  static_cast<void>(save_bundle(folder / "b.npz", bundle));
  EXPECT_EQ(manifest_note(load_bundle(folder / "b.npz")), "");
  EXPECT_EQ(manifest_note(Bundle{}), "");
}

TEST(Bundle, UnknownKeysOfTheManifestAreRejectedAndNotWritten) {
  const std::string message = manifest_rejection(
      R"({"kvscope_bundle": 1, "layuot": "nhd", "tensors": {)"
      R"("k": {"dtype": "bf16", "shape": [1, 2], "crc32": "95f68a1a"}, "lse": {"dtype": "f64", "shape": [1], "crc32": "8d3a01b8"}}})");
  EXPECT_THAT(message,
              testing::StartsWith("b.npz rejected: manifest: unknown key 'layuot': the file was damaged, or the "
                                  "key is not one of kvscope; keys are kvscope_bundle, producer, layout"));
  EXPECT_THAT(
      manifest_rejection(
          R"({"kvscope_bundle": 1, "tensors": {)"
          R"("k": {"dtype": "bf16", "shape": [1, 2], "crc32": "95f68a1a", "size": 1}, "lse": {"dtype": "f64", "shape": [1], "crc32": "8d3a01b8"}}})"),
      testing::HasSubstr("tensor 'k': unknown key 'size' in the manifest"));
  const TempFolder folder;
  Bundle bundle = small_bundle();
  bundle.manifest.set("notes", "mine");
  EXPECT_THAT(message_of([&] { static_cast<void>(save_bundle(folder / "b.npz", bundle)); }),
              testing::HasSubstr("manifest: unknown key 'notes'"));
  EXPECT_EQ(folder.files(), 0u);
}

// A device or a pipe may not end: /dev/zero would be read until the memory is full.
TEST(Bundle, DevicesAndPipesAreRejectedBeforeTheyAreRead) {
  const TempFolder folder;
  std::filesystem::create_symlink("/dev/zero", folder / "zero.safetensors");
  ASSERT_EQ(mkfifo((folder / "pipe.npz").c_str(), 0600), 0);
  for (const char* name : {"zero.safetensors", "pipe.npz"}) {
    EXPECT_EQ(
        message_of([&] { static_cast<void>(load_bundle(folder / name)); }),
        (folder / name).string() + " rejected: is a device or a pipe, which may not end: write it to a file first");
  }
}

// 60 GB that take no disk space: the first bytes show that they are not a bundle.
TEST(Bundle, ALongFileOfAnotherFormatIsRejectedByItsStart) {
  const TempFolder folder;
  const std::uintmax_t size = std::uintmax_t{60} << 30;
  const auto sparse = [&](const char* name, const std::string& start) {
    spit(folder / name, start);
    std::filesystem::resize_file(folder / name, size);
    return message_of([&] { static_cast<void>(load_bundle(folder / name)); });
  };
  EXPECT_THAT(sparse("b.npz", "not a zip"), testing::EndsWith("not a readable zip archive: Not a zip archive"));
  EXPECT_THAT(sparse("b.npy", "\x93NUMPY\1"), testing::HasSubstr("npy header, character 0: expected '{'"));
  EXPECT_THAT(sparse("c.npy", npy_bytes(make_tensor(DType::u8, {3}))), testing::HasSubstr("more follow: remove them"));
  EXPECT_THAT(sparse("b.safetensors", safetensors_bytes({{{"a", make_tensor(DType::u8, {3})}}, {}})),
              testing::HasSubstr("bytes belong to no tensor"));
}

// Larger than the buffer that tensors are read through, of a length that it does not divide.
TEST(Bundle, TensorsLargerThanTheReadBufferComeBackBitForBit) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "large_tensor.safetensors";
  Bundle bundle;
  Tensor& tensor = bundle.tensors.emplace("x", make_tensor(DType::u8, {600'001})).first->second;
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) tensor.bytes[i] = static_cast<std::byte>(i * 251 >> 7);
  save_bundle(path, bundle);
  EXPECT_TRUE(load_bundle(path).tensors == bundle.tensors);
  std::filesystem::remove(path);
}

TEST(Bundle, AFileThatBecomesShorterWhileItIsReadIsAnInputError) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "shorter.safetensors";
  write_file_atomically(path, std::string(1000, 'x'));
  const BundleFile file(path);
  std::filesystem::resize_file(path, 400);
  EXPECT_EQ(file.read_exactly(100, 300).size(), 300u);
  try {
    static_cast<void>(file.read_exactly(100, 301));
    FAIL() << "expected InputError";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("ended while it was read, before byte 401"), std::string::npos) << e.what();
  }
  std::filesystem::remove(path);
}

TEST(Bundle, ASingleNpyIsATensorCalledAfterTheFile) {
  const TempFolder folder;
  Bundle bundle;
  bundle.tensors.emplace("q", tensor_of<bf16>({1}, std::array{bf16{0x3f80}}));
  save_bundle(folder / "q_bf16.npy", bundle);
  EXPECT_EQ(load_bundle(folder / "q_bf16.npy").tensors, bundle.tensors);
  EXPECT_EQ(message_of([&] { save_bundle(folder / "two.npy", small_bundle()); }),
            (folder / "two.npy").string() +
                " rejected: an npy file holds one tensor, this bundle has 2: save as .safetensors or .npz");
}

TEST(Bundle, PicklesAndUnknownEndingsAreRejectedWithTheNextStep) {
  EXPECT_EQ(message_of([] { static_cast<void>(load_bundle("w.pt")); }),
            "w.pt rejected: '.pt' is a Python pickle, which is code: never read. Convert it where it was made:\n"
            "  import torch; from safetensors.torch import save_file\n"
            "  save_file({k: v.contiguous() for k, v in torch.load('w.pt', weights_only=True).items()}, "
            "'w.safetensors')");
  for (const std::string ending : {".pth", ".bin", ".pkl", ".pickle", ".ckpt"}) {
    EXPECT_THAT(message_of([&] { static_cast<void>(load_bundle("w" + ending)); }),
                testing::StartsWith("w" + ending + " rejected: '" + ending + "' is a Python pickle, which is code"));
  }
  // Before a long computation: what is wrong with the name of a file to write.
  EXPECT_EQ(message_of([] { check_bundle_name("out/w.pt"); }),
            "out/w.pt rejected: '.pt' is the format of torch.save, which kvscope does not write: name the file "
            "out/w.safetensors");
  EXPECT_EQ(message_of([] { static_cast<void>(load_bundle("w.h5")); }),
            "w.h5 rejected: ending '.h5' names no bundle; endings are .safetensors, .npz and .npy");
}

// torch.save writes a zip; under another ending its members would only be "not .npy".
TEST(Bundle, FilesOfTorchSaveAreRecognizedUnderAnyEnding) {
  const TempFolder folder;
  const std::string zip("PK\x03\x04\x00\x00\x08\x08\x00\x00", 10);
  for (const char* ending : {"w.npz", "w.safetensors", "w.npy"}) {
    spit(folder / ending, zip + std::string(20, '\0') + "archive/data.pkl");
    EXPECT_THAT(message_of([&] { static_cast<void>(load_bundle(folder / ending)); }),
                testing::AllOf(testing::HasSubstr("was written by torch.save, as a Python pickle"),
                               testing::HasSubstr("weights_only=True")));
  }
}

// The length of the header comes first in a .safetensors; these lengths begin as pickles of protocol 2 to 5 do.
TEST(Bundle, ASafetensorsHeaderOfAnyLengthIsNoPickle) {
  const TempFolder folder;
  for (std::size_t length = 600; length <= 1440; length += 8) {
    std::string header = R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    header.resize(length, ' ');
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(length % 256);
    bytes[1] = static_cast<char>(length / 256);
    spit(folder / "x.safetensors", bytes + header + std::string(4, '\0'));
    EXPECT_EQ(load_bundle(folder / "x.safetensors").tensors.size(), 1u) << length;
  }
  // Protocols 2 to 5 are pickles; bytes like a header's length that no header follows are none.
  const auto is_pickle = [&](std::string start) {
    spit(folder / "p.safetensors", start);
    const std::string message = message_of([&] { static_cast<void>(load_bundle(folder / "p.safetensors")); });
    return message.find("written by torch.save") != std::string::npos;
  };
  const std::string rest(20, ' ');
  EXPECT_TRUE(is_pickle(std::string("\x80\x02}q\0X", 6) + rest));
  EXPECT_TRUE(is_pickle("\x80\x05}q" + rest));
  EXPECT_TRUE(is_pickle("\x80\x02}"));
  EXPECT_TRUE(is_pickle(std::string("\x80\x02\0\0\0\0\0\0[", 9) + rest)) << "no header begins with a bracket";
  EXPECT_FALSE(is_pickle("\x80\x01}q" + rest));
  EXPECT_FALSE(is_pickle("\x80\x06}q" + rest));
  EXPECT_FALSE(is_pickle("\x80\x02"));
  EXPECT_FALSE(is_pickle("\x7f\x02}q" + rest));
}

TEST(Bundle, AFailedSaveLeavesTheOldFileAndNoOther) {
  const TempFolder folder;
  save_bundle(folder / "b.npz", small_bundle());
  const std::string before = slurp(folder / "b.npz");
  Bundle bad = small_bundle();
  bad.tensors.emplace("x_bf16", make_tensor(DType::u16, {1}));
  EXPECT_THROW(save_bundle(folder / "b.npz", bad), InputError);
  EXPECT_EQ(slurp(folder / "b.npz"), before);
  EXPECT_EQ(folder.files(), 1u);
}

}  // namespace
}  // namespace kvscope::golden::bundle_test
