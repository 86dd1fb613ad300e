// RUN: llm-opt %s --canonicalize | FileCheck %s --enable-var-scope

// CHECK-LABEL: func.func @cast_to_own_type
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>)
// CHECK-NEXT: return %[[X]]
func.func @cast_to_own_type(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = llm.cast %x : tensor<?xf32> -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// There and back through a type that holds every value.
// CHECK-LABEL: func.func @cast_back
// CHECK-SAME: (%[[A:.*]]: tensor<?xi32>, %[[B:.*]]: tensor<?xbf16>, %[[C:.*]]: tensor<?xi1>, %[[D:.*]]: tensor<?xui8>, %[[E:.*]]: tensor<?xi8>)
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]]
func.func @cast_back(%a: tensor<?xi32>, %b: tensor<?xbf16>, %c: tensor<?xi1>,
                     %d: tensor<?xui8>, %e: tensor<?xi8>)
    -> (tensor<?xi32>, tensor<?xbf16>, tensor<?xi1>, tensor<?xui8>, tensor<?xi8>) {
  %0 = llm.cast %a : tensor<?xi32> -> tensor<?xi64>
  %1 = llm.cast %0 : tensor<?xi64> -> tensor<?xi32>
  %2 = llm.cast %b : tensor<?xbf16> -> tensor<?xf32>
  %3 = llm.cast %2 : tensor<?xf32> -> tensor<?xbf16>
  %4 = llm.cast %c : tensor<?xi1> -> tensor<?xf32>
  %5 = llm.cast %4 : tensor<?xf32> -> tensor<?xi1>
  %6 = llm.cast %d : tensor<?xui8> -> tensor<?xi16>
  %7 = llm.cast %6 : tensor<?xi16> -> tensor<?xui8>
  %8 = llm.cast %e : tensor<?xi8> -> tensor<?xf32>
  %9 = llm.cast %8 : tensor<?xf32> -> tensor<?xi8>
  return %1, %3, %5, %7, %9
    : tensor<?xi32>, tensor<?xbf16>, tensor<?xi1>, tensor<?xui8>, tensor<?xi8>
}

// A type between that loses some: fewer bits, a shorter fraction or range,
// another sign. A cast to eight bits of float saturates infinities.
// CHECK-LABEL: func.func @cast_back_with_loss
// CHECK-COUNT-14: llm.cast
// CHECK-NOT: llm.cast
// CHECK: return
func.func @cast_back_with_loss(%a: tensor<?xi64>, %b: tensor<?xf32>, %c: tensor<?xf16>,
                               %d: tensor<?xi32>, %e: tensor<?xui8>, %f: tensor<?xi8>,
                               %g: tensor<?xf8E5M2>)
    -> (tensor<?xi64>, tensor<?xf32>, tensor<?xf16>, tensor<?xi32>, tensor<?xui8>, tensor<?xi8>,
        tensor<?xf8E5M2>) {
  %0 = llm.cast %a : tensor<?xi64> -> tensor<?xi32>
  %1 = llm.cast %0 : tensor<?xi32> -> tensor<?xi64>
  %2 = llm.cast %b : tensor<?xf32> -> tensor<?xf16>
  %3 = llm.cast %2 : tensor<?xf16> -> tensor<?xf32>
  %4 = llm.cast %c : tensor<?xf16> -> tensor<?xbf16>
  %5 = llm.cast %4 : tensor<?xbf16> -> tensor<?xf16>
  %6 = llm.cast %d : tensor<?xi32> -> tensor<?xf32>
  %7 = llm.cast %6 : tensor<?xf32> -> tensor<?xi32>
  %8 = llm.cast %e : tensor<?xui8> -> tensor<?xi8>
  %9 = llm.cast %8 : tensor<?xi8> -> tensor<?xui8>
  %10 = llm.cast %f : tensor<?xi8> -> tensor<?xui64>
  %11 = llm.cast %10 : tensor<?xui64> -> tensor<?xi8>
  %12 = llm.cast %g : tensor<?xf8E5M2> -> tensor<?xf32>
  %13 = llm.cast %12 : tensor<?xf32> -> tensor<?xf8E5M2>
  return %1, %3, %5, %7, %9, %11, %13
    : tensor<?xi64>, tensor<?xf32>, tensor<?xf16>, tensor<?xi32>, tensor<?xui8>, tensor<?xi8>,
      tensor<?xf8E5M2>
}

// CHECK-LABEL: func.func @concat_of_one
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>)
// CHECK: %[[Y:.*]] = llm.concat %[[X]] {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT: return %[[X]], %[[Y]]
func.func @concat_of_one(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<2x4xf32>) {
  %0 = llm.concat %x {axis = 0 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = llm.concat %x {axis = 0 : i64} : (tensor<?x4xf32>) -> tensor<2x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<2x4xf32>
}

// Where a size is not known, the input may be the smaller one.
// CHECK-LABEL: func.func @expand_to_own_type
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[Y:.*]]: tensor<?x4xf32>, %[[S:.*]]: tensor<2xi64>)
// CHECK-NEXT: %[[Z:.*]] = llm.expand %[[Y]], %[[S]]
// CHECK-NEXT: return %[[X]], %[[Z]]
func.func @expand_to_own_type(%x: tensor<2x4xf32>, %y: tensor<?x4xf32>, %s: tensor<2xi64>)
    -> (tensor<2x4xf32>, tensor<?x4xf32>) {
  %0 = llm.expand %x, %s : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %1 = llm.expand %y, %s : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func.func @gather_of_constants
// CHECK-DAG: %[[A:.*]] = llm.constant dense<[30, 10]> : tensor<2xi64>
// CHECK-DAG: %[[B:.*]] = llm.constant dense<20> : tensor<i64>
// CHECK: return %[[A]], %[[B]]
func.func @gather_of_constants() -> (tensor<2xi64>, tensor<i64>) {
  %x = llm.constant dense<[10, 20, 30]> : tensor<3xi64>
  %i = llm.constant dense<[-1, 0]> : tensor<2xi64>
  %j = llm.constant dense<1> : tensor<i32>
  %0 = llm.gather %x, %i {axis = 0 : i64} : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
  %1 = llm.gather %x, %j {axis = 0 : i64} : (tensor<3xi64>, tensor<i32>) -> tensor<i64>
  return %0, %1 : tensor<2xi64>, tensor<i64>
}

// The element picked from a splat, and nothing written out.
// CHECK-LABEL: func.func @gather_of_splat
// CHECK: %[[A:.*]] = llm.constant dense<7> : tensor<1xi64>
// CHECK: return %[[A]]
func.func @gather_of_splat() -> tensor<1xi64> {
  %x = llm.constant dense<7> : tensor<1000000000000xi64>
  %i = llm.constant dense<999999999999> : tensor<1xi64>
  %0 = llm.gather %x, %i {axis = 0 : i64} : (tensor<1000000000000xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %0 : tensor<1xi64>
}

// An index out of range, an unsigned index that is negative as a signed one,
// an index of more bits than 64, more indices than are worth writing out, and
// a matrix.
// CHECK-LABEL: func.func @gather_not_folded
// CHECK-COUNT-5: llm.gather
// CHECK: return
func.func @gather_not_folded() -> (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1000000000000xi64>, tensor<1x1xi64>) {
  %x = llm.constant dense<[10, 20, 30]> : tensor<3xi64>
  %i = llm.constant dense<3> : tensor<1xi64>
  %j = llm.constant dense<255> : tensor<1xui8>
  %k = llm.constant dense<0x10000000000000000> : tensor<1xi128>
  %l = llm.constant dense<0> : tensor<1000000000000xi64>
  %m = llm.constant dense<[[1]]> : tensor<1x1xi64>
  %n = llm.constant dense<0> : tensor<1xi64>
  %0 = llm.gather %x, %i {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %1 = llm.gather %x, %j {axis = 0 : i64} : (tensor<3xi64>, tensor<1xui8>) -> tensor<1xi64>
  %2 = llm.gather %x, %k {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi128>) -> tensor<1xi64>
  %3 = llm.gather %x, %l {axis = 0 : i64} : (tensor<3xi64>, tensor<1000000000000xi64>) -> tensor<1000000000000xi64>
  %4 = llm.gather %m, %n {axis = 1 : i64} : (tensor<1x1xi64>, tensor<1xi64>) -> tensor<1x1xi64>
  return %0, %1, %2, %3, %4 : tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1000000000000xi64>, tensor<1x1xi64>
}

// The number of elements says what one unknown size is.
// CHECK-LABEL: func.func @reshape_to_own_type
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<?x3xf32>, %{{.*}}: tensor<2xi64>)
// CHECK-NEXT: return %[[X]], %[[Y]]
func.func @reshape_to_own_type(%x: tensor<2x3xf32>, %y: tensor<?x3xf32>, %s: tensor<2xi64>)
    -> (tensor<2x3xf32>, tensor<?x3xf32>) {
  %0 = llm.reshape %x, %s : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %1 = llm.reshape %y, %s : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<?x3xf32>
}

// CHECK-LABEL: func.func @reshape_with_unknown_sizes
// CHECK-COUNT-2: llm.reshape
// CHECK: return
func.func @reshape_with_unknown_sizes(%x: tensor<?x?xf32>, %y: tensor<?x0xf32>, %s: tensor<2xi64>)
    -> (tensor<?x?xf32>, tensor<?x0xf32>) {
  %0 = llm.reshape %x, %s : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %1 = llm.reshape %y, %s : (tensor<?x0xf32>, tensor<2xi64>) -> tensor<?x0xf32>
  return %0, %1 : tensor<?x?xf32>, tensor<?x0xf32>
}

// CHECK-LABEL: func.func @shape
// CHECK-DAG: %[[ALL:.*]] = llm.constant dense<[2, 3, 4]> : tensor<3xi64>
// CHECK-DAG: %[[LAST:.*]] = llm.constant dense<4> : tensor<1xi64>
// CHECK-DAG: %[[FIRST:.*]] = llm.constant dense<2> : tensor<1xi64>
// CHECK-DAG: %[[NONE:.*]] = llm.constant dense<> : tensor<0xi64>
// CHECK-DAG: %[[TAIL:.*]] = llm.constant dense<[3, 4]> : tensor<2xi64>
// CHECK: return %[[ALL]], %[[LAST]], %[[FIRST]], %[[NONE]], %[[TAIL]]
func.func @shape(%x: tensor<2x3x4xf32>, %y: tensor<?x3x4xf32>)
    -> (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>, tensor<0xi64>, tensor<2xi64>) {
  %0 = llm.shape %x {start = -9223372036854775808 : i64, end = 9223372036854775807 : i64} : tensor<2x3x4xf32> -> tensor<3xi64>
  %1 = llm.shape %x {start = -1 : i64} : tensor<2x3x4xf32> -> tensor<1xi64>
  %2 = llm.shape %x {end = -2 : i64} : tensor<2x3x4xf32> -> tensor<1xi64>
  %3 = llm.shape %x {start = 2 : i64, end = 1 : i64} : tensor<2x3x4xf32> -> tensor<0xi64>
  %4 = llm.shape %y {start = 1 : i64} : tensor<?x3x4xf32> -> tensor<2xi64>
  return %0, %1, %2, %3, %4 : tensor<3xi64>, tensor<1xi64>, tensor<1xi64>, tensor<0xi64>, tensor<2xi64>
}

// An unknown size, and one that the element type does not hold.
// CHECK-LABEL: func.func @shape_kept
// CHECK-COUNT-2: llm.shape
// CHECK: return
func.func @shape_kept(%x: tensor<?x3xf32>, %y: tensor<1000xf32>) -> (tensor<2xi64>, tensor<1xi8>) {
  %0 = llm.shape %x : tensor<?x3xf32> -> tensor<2xi64>
  %1 = llm.shape %y : tensor<1000xf32> -> tensor<1xi8>
  return %0, %1 : tensor<2xi64>, tensor<1xi8>
}

// CHECK-LABEL: func.func @squeeze_of_constant
// CHECK-DAG: %[[A:.*]] = llm.constant dense<[1, 2]> : tensor<2xi64>
// CHECK-DAG: %[[B:.*]] = llm.constant dense<{{\[\[}}1], [2]]> : tensor<2x1xi64>
// CHECK: return %[[A]], %[[B]]
func.func @squeeze_of_constant() -> (tensor<2xi64>, tensor<2x1xi64>) {
  %x = llm.constant dense<[[1, 2]]> : tensor<1x2xi64>
  %y = llm.constant dense<[1, 2]> : tensor<2xi64>
  %0 = llm.squeeze %x axes [0] : tensor<1x2xi64> -> tensor<2xi64>
  %1 = llm.unsqueeze %y axes [1] : tensor<2xi64> -> tensor<2x1xi64>
  return %0, %1 : tensor<2xi64>, tensor<2x1xi64>
}

// CHECK-LABEL: func.func @squeeze_of_unsqueeze
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<1x?xf32>)
// CHECK-NEXT: return %[[X]], %[[Y]], %[[X]], %[[X]]
func.func @squeeze_of_unsqueeze(%x: tensor<?x4xf32>, %y: tensor<1x?xf32>)
    -> (tensor<?x4xf32>, tensor<1x?xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = llm.unsqueeze %x axes [1] : tensor<?x4xf32> -> tensor<?x1x4xf32>
  %1 = llm.squeeze %0 axes [1] : tensor<?x1x4xf32> -> tensor<?x4xf32>
  %2 = llm.squeeze %y axes [0] : tensor<1x?xf32> -> tensor<?xf32>
  %3 = llm.unsqueeze %2 axes [-2] : tensor<?xf32> -> tensor<1x?xf32>
  %4 = llm.squeeze %x axes [] : tensor<?x4xf32> -> tensor<?x4xf32>
  %5 = llm.unsqueeze %x axes [] : tensor<?x4xf32> -> tensor<?x4xf32>
  return %1, %3, %4, %5 : tensor<?x4xf32>, tensor<1x?xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// [1, n] to [n] to [n, 1] has the type of [?, ?] both before and after.
// CHECK-LABEL: func.func @unsqueeze_elsewhere
// CHECK: llm.squeeze
// CHECK: %[[Y:.*]] = llm.unsqueeze
// CHECK: return %[[Y]]
func.func @unsqueeze_elsewhere(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = llm.squeeze %x axes [0] : tensor<?x?xf32> -> tensor<?xf32>
  %1 = llm.unsqueeze %0 axes [1] : tensor<?xf32> -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @transpose_of_transpose
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT: return %[[X]], %[[X]]
func.func @transpose_of_transpose(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %0 = llm.transpose %x perm [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = llm.transpose %0 perm [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  %2 = llm.transpose %x perm [0, 1, 2] : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %1, %2 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// The same permutation twice is another one; a type that says more is kept.
// CHECK-LABEL: func.func @transpose_kept
// CHECK-COUNT-3: llm.transpose
// CHECK: return
func.func @transpose_kept(%x: tensor<2x2x2xf32>, %y: tensor<?x4xf32>) -> (tensor<2x2x2xf32>, tensor<3x4xf32>) {
  %0 = llm.transpose %x perm [1, 2, 0] : tensor<2x2x2xf32> -> tensor<2x2x2xf32>
  %1 = llm.transpose %0 perm [1, 2, 0] : tensor<2x2x2xf32> -> tensor<2x2x2xf32>
  %2 = llm.transpose %y perm [0, 1] : tensor<?x4xf32> -> tensor<3x4xf32>
  return %1, %2 : tensor<2x2x2xf32>, tensor<3x4xf32>
}
