//===- weight_data_test.cpp - The bytes of a stored weight ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/WeightData.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <tuple>

using namespace mlir;

namespace {

class WeightDataTest : public ::testing::Test {
protected:
  WeightDataTest()
      : handler(&context, [this](Diagnostic &diag) { message = diag.str(); }) {
    context.loadDialect<mlir::llm::LLMDialect>();
    llvm::SmallString<128> name;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("weight", "bin", name));
    path = std::string(name);
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << "0123456789abcdef";
  }
  ~WeightDataTest() override { std::ignore = llvm::sys::fs::remove(path); }

  std::vector<int> bytes(const std::string &text, bool verify = false) {
    auto component = dyn_cast_or_null<mlir::llm::ComponentAttr>(
        parseAttribute(text, &context));
    EXPECT_TRUE(component) << text << message;
    if (!component)
      return {};
    FailureOr<::llm::WeightData> data = ::llm::WeightData::open(
        component, [&] { return emitError(UnknownLoc::get(&context)); },
        nullptr, verify);
    if (failed(data))
      return {-1};
    std::vector<int> out;
    for (char c : data->bytes())
      out.push_back(static_cast<unsigned char>(c));
    return out;
  }
  std::string span(const std::string &rest) {
    return "#llm.component<\"data\", tensor<4xi8>, #llm.span<\"" + path +
           "\", " + rest + ">>";
  }

  MLIRContext context;
  std::string path, message;
  ScopedDiagnosticHandler handler;
};

TEST_F(WeightDataTest, InlineFormsArePackedLowBitsFirst) {
  EXPECT_EQ(bytes("#llm.component<\"d\", tensor<3xi4>, dense<[1, -1, 2]> : "
                  "tensor<3xi4>>"),
            (std::vector<int>{0xf1, 0x02}));
  EXPECT_EQ(bytes("#llm.component<\"d\", tensor<3xi1>, dense<[true, false, "
                  "true]> : tensor<3xi1>>"),
            (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(bytes("#llm.component<\"d\", tensor<2xf32>, dense<1.0> : "
                  "tensor<2xf32>>"),
            (std::vector<int>{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}));
  EXPECT_EQ(bytes("#llm.component<\"d\", tensor<2xi16>, dense<[258, -2]> : "
                  "tensor<2xi16>>"),
            (std::vector<int>{2, 1, 0xfe, 0xff}));
  EXPECT_EQ(bytes("#llm.component<\"d\", tensor<2xbf16>, dense<[1.0, -2.0]> : "
                  "tensor<2xbf16>>"),
            (std::vector<int>{0x80, 0x3f, 0, 0xc0}));
}

TEST_F(WeightDataTest, SpansAreViewsWithinTheFile) {
  EXPECT_EQ(bytes(span("12, 4, \"0000000000000000\"")),
            (std::vector<int>{'c', 'd', 'e', 'f'}));
  EXPECT_EQ(bytes(span("13, 4, \"0000000000000000\"")), (std::vector<int>{-1}));
  EXPECT_NE(message.find("takes 4 bytes at offset 13"), std::string::npos)
      << message;
  EXPECT_EQ(bytes(span("18446744073709551611, 4, \"0000000000000000\"")),
            (std::vector<int>{-1}));
}

TEST_F(WeightDataTest, TheHashIsCheckedOnRequest) {
  // XXH3-64 of the empty string, from the reference implementation's tests.
  EXPECT_EQ(::llm::hashBytes({}), "2d06800538d394c2");
  std::string hash = ::llm::hashBytes(llvm::ArrayRef<char>("cdef", 4));
  EXPECT_EQ(bytes(span("12, 4, \"" + hash + "\""), true).size(), 4u);
  EXPECT_EQ(bytes(span("11, 4, \"" + hash + "\""), true),
            (std::vector<int>{-1}));
  EXPECT_NE(message.find("has changed since"), std::string::npos) << message;
}

TEST_F(WeightDataTest, OnlyRegularFilesAreMapped) {
  EXPECT_FALSE(::llm::MappedFile::open("/dev/zero"));
  EXPECT_FALSE(::llm::MappedFile::open("."));
  EXPECT_FALSE(::llm::MappedFile::open(path + ".absent"));
}

} // namespace
