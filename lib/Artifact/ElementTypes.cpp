//===- ElementTypes.cpp - Element types of the manifest ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Artifact.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llm {

artifact::ElementType elementTypeOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return artifact::BOOL;
    case 2:
      return isUnsigned ? artifact::U2 : artifact::I2;
    case 4:
      return isUnsigned ? artifact::U4 : artifact::I4;
    case 8:
      return isUnsigned ? artifact::U8 : artifact::I8;
    case 16:
      return isUnsigned ? artifact::U16 : artifact::I16;
    case 32:
      return isUnsigned ? artifact::U32 : artifact::I32;
    case 64:
      return isUnsigned ? artifact::U64 : artifact::I64;
    default:
      return artifact::ELEMENT_UNKNOWN;
    }
  }
  return llvm::TypeSwitch<Type, artifact::ElementType>(type)
      .Case([](Float32Type) { return artifact::F32; })
      .Case([](Float16Type) { return artifact::F16; })
      .Case([](BFloat16Type) { return artifact::BF16; })
      .Case([](Float64Type) { return artifact::F64; })
      .Case([](Float8E4M3FNType) { return artifact::F8E4M3FN; })
      .Case([](Float8E4M3FNUZType) { return artifact::F8E4M3FNUZ; })
      .Case([](Float8E5M2Type) { return artifact::F8E5M2; })
      .Case([](Float8E5M2FNUZType) { return artifact::F8E5M2FNUZ; })
      .Case([](Float4E2M1FNType) { return artifact::F4E2M1FN; })
      .Case([](Float8E8M0FNUType) { return artifact::F8E8M0FNU; })
      .Default(artifact::ELEMENT_UNKNOWN);
}

Type typeOf(artifact::ElementType type, MLIRContext &context) {
  auto integer = [&](unsigned width, bool isUnsigned) -> Type {
    return IntegerType::get(&context, width,
                            isUnsigned ? IntegerType::Unsigned
                                       : IntegerType::Signless);
  };
  switch (type) {
  case artifact::F32:
    return Float32Type::get(&context);
  case artifact::F16:
    return Float16Type::get(&context);
  case artifact::BF16:
    return BFloat16Type::get(&context);
  case artifact::F64:
    return Float64Type::get(&context);
  case artifact::BOOL:
    return integer(1, false);
  case artifact::I2:
  case artifact::U2:
    return integer(2, type == artifact::U2);
  case artifact::I4:
  case artifact::U4:
    return integer(4, type == artifact::U4);
  case artifact::I8:
  case artifact::U8:
    return integer(8, type == artifact::U8);
  case artifact::I16:
  case artifact::U16:
    return integer(16, type == artifact::U16);
  case artifact::I32:
  case artifact::U32:
    return integer(32, type == artifact::U32);
  case artifact::I64:
  case artifact::U64:
    return integer(64, type == artifact::U64);
  case artifact::F8E4M3FN:
    return Float8E4M3FNType::get(&context);
  case artifact::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(&context);
  case artifact::F8E5M2:
    return Float8E5M2Type::get(&context);
  case artifact::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(&context);
  case artifact::F4E2M1FN:
    return Float4E2M1FNType::get(&context);
  case artifact::F8E8M0FNU:
    return Float8E8M0FNUType::get(&context);
  default:
    return {};
  }
}

} // namespace llm
