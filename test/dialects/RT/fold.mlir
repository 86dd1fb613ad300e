// Size expressions fold where they are parsed.
// RUN: llm-opt %s | FileCheck %s

// CHECK-LABEL: func.func private @constants
// CHECK-SAME: add = #rt.expr<3>, ceildiv = #rt.expr<3>, max = #rt.expr<7>, min = #rt.expr<3>, mul = #rt.expr<42>
func.func private @constants() attributes {
  add = #rt.expr<1 + 2>, mul = #rt.expr<6 * 7>, ceildiv = #rt.expr<ceildiv(17, 8)>,
  min = #rt.expr<min(7, 3)>, max = #rt.expr<max(7, 3)>}

// CHECK-LABEL: func.func private @neutral
// CHECK-SAME: a = #rt.expr<T>, b = #rt.expr<T>, c = #rt.expr<T>, d = #rt.expr<T>, e = #rt.expr<T>, f = #rt.expr<0>, g = #rt.expr<0>, h = #rt.expr<T>, i = #rt.expr<T>
func.func private @neutral() attributes {
  a = #rt.expr<T + 0>, b = #rt.expr<0 + T>, c = #rt.expr<T * 1>, d = #rt.expr<1 * T>,
  e = #rt.expr<ceildiv(T, 1)>, f = #rt.expr<T * 0>, g = #rt.expr<0 * T>,
  h = #rt.expr<min(T, T)>, i = #rt.expr<max(T, T)>}

// Factors meet, and equal terms are counted.
// CHECK-LABEL: func.func private @terms
// CHECK-SAME: a = #rt.expr<T * 24>, b = #rt.expr<T * 2>, c = #rt.expr<T * 7>, d = #rt.expr<R + T * 3>, e = #rt.expr<T + R + T>
func.func private @terms() attributes {
  a = #rt.expr<T * 4 * 6>, b = #rt.expr<T + T>, c = #rt.expr<T * 3 + T * 4>,
  d = #rt.expr<R + T * 2 + T>, e = #rt.expr<T + R + T>}

// Sizes are not negative: the larger factor gives the larger size.
// CHECK-LABEL: func.func private @extrema
// CHECK-SAME: a = #rt.expr<T * 7>, b = #rt.expr<T>, c = #rt.expr<max(R, T * 5)>, d = #rt.expr<min(T, R * 2)>, e = #rt.expr<max(T, 8)>
func.func private @extrema() attributes {
  a = #rt.expr<max(T * 7, T * 4)>, b = #rt.expr<min(T * 3, T)>,
  c = #rt.expr<max(max(R, T * 5), T * 2)>, d = #rt.expr<min(T, R * 2)>,
  e = #rt.expr<max(T, 8)>}

// What has no value in 64 bits, or none at all, stays as it is written.
// CHECK-LABEL: func.func private @without_value
// CHECK-SAME: a = #rt.expr<9223372036854775807 + 1>, b = #rt.expr<4611686018427387904 * 4>, c = #rt.expr<ceildiv(T, 0)>, d = #rt.expr<ceildiv(1, 0)>, e = #rt.expr<T * 4611686018427387904 * 4>
func.func private @without_value() attributes {
  a = #rt.expr<9223372036854775807 + 1>, b = #rt.expr<4611686018427387904 * 4>,
  c = #rt.expr<ceildiv(T, 0)>, d = #rt.expr<ceildiv(1, 0)>, e = #rt.expr<T * 4611686018427387904 * 4>}
