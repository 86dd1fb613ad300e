// RUN: llm-opt %s --llm-fuse-dispatches | FileCheck %s --enable-var-scope
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @norm family "rms_norm" params {dim = 64 : i64, epsilon = 1.0e-5 : f64} { }
  rt.kernel @quantize family "quantize_rows" params {group_size = 32 : i64, k = 64 : i64, scale_group = 64 : i64, zero = 8 : i64} { }
  rt.kernel @cast family "cast_rows" params {k = 64 : i64} { }
  rt.kernel @linear family "linear" params {k = 64 : i64, n = 64 : i64} { }
  rt.kernel @add family "elementwise" params {ops = ["in0", "in1", "add"], width = 64 : i64} { }
  rt.kernel @silu family "elementwise" params {ops = ["in0", "silu"], width = 64 : i64} { }
  %x = rt.buffer io "x" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %s = rt.buffer constant "s" [#rt.expr<64>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<4096>] : !rt.buffer<f32>
  %rows = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %y = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %sum = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %act = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %kept = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %out = rt.buffer io "out" [#rt.expr<T * 64>] : !rt.buffer<f32>
  rt.dispatch @norm grid #rt.expr<T> sizes [#rt.expr<T>] reads(%x, %s : !rt.buffer<f32>, !rt.buffer<f32>) writes(%rows : !rt.buffer<f32>)
  %codes = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<i8>
  %scales = rt.buffer transient "" [#rt.expr<T * 2>] : !rt.buffer<f32>
  %offsets = rt.buffer transient "" [#rt.expr<T * 2>] : !rt.buffer<i32>
  rt.dispatch @quantize grid #rt.expr<T> sizes [#rt.expr<T>] reads(%rows : !rt.buffer<f32>) writes(%codes, %scales, %offsets : !rt.buffer<i8>, !rt.buffer<f32>, !rt.buffer<i32>)
  rt.dispatch @linear grid #rt.expr<2> sizes [#rt.expr<T>] reads(%codes, %scales, %offsets, %w : !rt.buffer<i8>, !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
  rt.dispatch @add grid #rt.expr<T> sizes [#rt.expr<T>] reads(%x, %y : !rt.buffer<f32>, !rt.buffer<f32>) writes(%sum : !rt.buffer<f32>)
  rt.dispatch @silu grid #rt.expr<T> sizes [#rt.expr<T>] reads(%sum : !rt.buffer<f32>) writes(%act : !rt.buffer<f32>)
  %narrow = rt.buffer transient "" [#rt.expr<T * 96>] : !rt.buffer<bf16>
  rt.dispatch @cast grid #rt.expr<T> sizes [#rt.expr<T>] reads(%act : !rt.buffer<f32>) writes(%narrow : !rt.buffer<bf16>)
  // The next one has two readers, and stays; so does the addition of it.
  rt.dispatch @silu grid #rt.expr<T> sizes [#rt.expr<T>] reads(%sum : !rt.buffer<f32>) writes(%kept : !rt.buffer<f32>)
  %narrow2 = rt.buffer transient "" [#rt.expr<T * 96>] : !rt.buffer<bf16>
  rt.dispatch @cast grid #rt.expr<T> sizes [#rt.expr<T>] reads(%kept : !rt.buffer<f32>) writes(%narrow2 : !rt.buffer<bf16>)
  rt.dispatch @add grid #rt.expr<T> sizes [#rt.expr<T>] reads(%kept, %sum : !rt.buffer<f32>, !rt.buffer<f32>) writes(%out : !rt.buffer<f32>)
}
// A kernel that nothing uses any more is gone.
// CHECK-NOT: family "quantize_rows"
// CHECK-DAG: rt.kernel @[[NORM:norm_.*]] family "rms_norm" params {dim = 64 : i64, epsilon = 1.000000e-05 : f64, group_size = 32 : i64, output = "int8", scale_group = 64 : i64, zero = 8 : i64}
// CHECK-DAG: rt.kernel @[[LINEAR:linear_.*]] family "linear" params {k = 64 : i64, n = 64 : i64, residual = true}
// CHECK-DAG: rt.kernel @[[SILU:silu_.*]] family "elementwise" params {ops = ["in0", "silu"], output = "bf16", width = 64 : i64}
// CHECK: %[[X:.*]] = rt.buffer io "x"
// CHECK: %[[SUM:.*]] = rt.buffer transient ""[<T * 64>] : <f32>
// CHECK: %[[CODES:.*]] = rt.buffer transient ""[<T * 64>] : <i8>
// CHECK: %[[SCALES:.*]] = rt.buffer transient ""[<T * 2>] : <f32>
// CHECK: %[[OFFSETS:.*]] = rt.buffer transient ""[<T * 2>] : <i32>
// CHECK: rt.dispatch @[[NORM]] {{.*}}reads(%[[X]], %{{.*}}) writes(%[[CODES]], %[[SCALES]], %[[OFFSETS]] :
// CHECK-NEXT: rt.dispatch @[[LINEAR]] {{.*}}reads(%[[CODES]], %[[SCALES]], %[[OFFSETS]], %{{.*}}, %[[X]] : {{.*}}) writes(%[[SUM]] :
// CHECK-NEXT: %[[NARROW:.*]] = rt.buffer transient ""[<T * 96>] : <bf16>
// CHECK-NEXT: rt.dispatch @[[SILU]] {{.*}}reads(%[[SUM]] : {{.*}}) writes(%[[NARROW]] :
// CHECK-NEXT: rt.dispatch @silu {{.*}}writes(%[[KEPT:.*]] :
// CHECK: rt.dispatch @cast {{.*}}reads(%[[KEPT]]
// CHECK: rt.dispatch @add {{.*}}reads(%[[KEPT]], %[[SUM]]

// Keys are rotated as they are stored, unless their rows have another reader,
// or are written over before that.
rt.program @rotate target "cpu" symbols ["T", "C"] {
  rt.kernel @rope family "rope" params {heads = 2 : i64, interleaved = false, positions = 16 : i64, rotary_dim = 8 : i64, size = 8 : i64} { }
  rt.kernel @keys family "kv_append" params {cache_type = bf16, heads = 2 : i64, plane = "key_blocks", width = 16 : i64} { }
  rt.kernel @rows family "kv_append" params {cache_type = f32, width = 16 : i64} { }
  rt.kernel @silu family "elementwise" params {ops = ["in0", "silu"], width = 16 : i64} { }
  %x = rt.buffer io "x" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %slot = rt.buffer io "slot.0" [#rt.expr<T>] : !rt.buffer<i32>
  %seq = rt.buffer io "seq" [#rt.expr<T>] : !rt.buffer<i32>
  %position = rt.buffer io "position" [#rt.expr<T>] : !rt.buffer<i32>
  %cos = rt.buffer constant "cos" [#rt.expr<64>] : !rt.buffer<f32>
  %sin = rt.buffer constant "sin" [#rt.expr<64>] : !rt.buffer<f32>
  %k = rt.buffer state "cache.0.0.k" [#rt.expr<C * 16>] {group = 0 : i64, layer = 0 : i64, plane = 0 : i64} : !rt.buffer<bf16>
  %k1 = rt.buffer state "cache.0.1.k" [#rt.expr<C * 16>] {group = 0 : i64, layer = 1 : i64, plane = 0 : i64} : !rt.buffer<f32>
  %rows0 = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %rows1 = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %rows2 = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %rows3 = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %out = rt.buffer io "out" [#rt.expr<T * 16>] : !rt.buffer<f32>
  rt.dispatch @rope grid #rt.expr<T> sizes [#rt.expr<T>] reads(%x, %position, %cos, %sin : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<f32>, !rt.buffer<f32>) writes(%rows0 : !rt.buffer<f32>)
  rt.dispatch @keys grid #rt.expr<T> sizes [#rt.expr<T>] reads(%rows0, %slot, %seq : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<i32>) writes(%k : !rt.buffer<bf16>)
  rt.dispatch @rope grid #rt.expr<T> sizes [#rt.expr<T>] reads(%x, %position, %cos, %sin : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<f32>, !rt.buffer<f32>) writes(%rows1 : !rt.buffer<f32>)
  rt.dispatch @rows grid #rt.expr<T> sizes [#rt.expr<T>] reads(%rows1, %slot, %seq : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<i32>) writes(%k1 : !rt.buffer<f32>)
  rt.dispatch @rope grid #rt.expr<T> sizes [#rt.expr<T>] reads(%x, %position, %cos, %sin : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<f32>, !rt.buffer<f32>) writes(%rows2 : !rt.buffer<f32>)
  rt.dispatch @rows grid #rt.expr<T> sizes [#rt.expr<T>] reads(%rows2, %slot, %seq : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<i32>) writes(%k1 : !rt.buffer<f32>)
  rt.dispatch @silu grid #rt.expr<T> sizes [#rt.expr<T>] reads(%rows2 : !rt.buffer<f32>) writes(%out : !rt.buffer<f32>)
  rt.dispatch @rope grid #rt.expr<T> sizes [#rt.expr<T>] reads(%out, %position, %cos, %sin : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<f32>, !rt.buffer<f32>) writes(%rows3 : !rt.buffer<f32>)
  rt.dispatch @silu grid #rt.expr<T> sizes [#rt.expr<T>] reads(%x : !rt.buffer<f32>) writes(%out : !rt.buffer<f32>)
  rt.dispatch @rows grid #rt.expr<T> sizes [#rt.expr<T>] reads(%rows3, %slot, %seq : !rt.buffer<f32>, !rt.buffer<i32>, !rt.buffer<i32>) writes(%k1 : !rt.buffer<f32>)
}
// CHECK-LABEL: rt.program @rotate
// CHECK-DAG: rt.kernel @[[KEYS:keys_.*]] family "kv_append" params {cache_type = bf16, heads = 2 : i64, interleaved = false, plane = "key_blocks", positions = 16 : i64, rotary_dim = 8 : i64, width = 16 : i64}
// CHECK-DAG: rt.kernel @[[ROWS:rows_.*]] family "kv_append" params {cache_type = f32, heads = 2 : i64, interleaved = false, positions = 16 : i64, rotary_dim = 8 : i64, width = 16 : i64}
// CHECK: rt.dispatch @[[KEYS]] {{.*}}reads(%[[X:[^,]*]], %[[SLOT:[^,]*]], %[[SEQ:[^,]*]], %[[POSITION:[^,]*]], %[[COS:[^,]*]], %[[SIN:[^ ]*]] :
// CHECK-NEXT: rt.dispatch @[[ROWS]] {{.*}}reads(%[[X]], %[[SLOT]], %[[SEQ]], %[[POSITION]], %[[COS]], %[[SIN]] :
// CHECK-NEXT: rt.dispatch @rope {{.*}} writes(%[[TWICE:[^ ]*]] :
// CHECK-NEXT: rt.dispatch @rows {{.*}}reads(%[[TWICE]], %[[SLOT]], %[[SEQ]] :
// CHECK-NEXT: rt.dispatch @silu
// CHECK-NEXT: rt.dispatch @rope
// CHECK-NEXT: rt.dispatch @silu
// CHECK-NEXT: rt.dispatch @rows

// A gated product: both linears, the chain and the conversion are one dispatch,
// whose items are the outputs that share a scale. Then a product with a bias and
// its activation; the other reader of %z keeps it apart from the gate below.
rt.program @gated target "cpu" symbols ["T"] {
  rt.kernel @linear family "linear" params {bias = false, k = 64 : i64, n = 160 : i64} { }
  rt.kernel @biased family "linear" params {bias = true, k = 64 : i64, n = 160 : i64} { }
  rt.kernel @gate family "elementwise" params {ops = ["in0", "silu", "in1", "mul"], width = 160 : i64} { }
  rt.kernel @gelu family "elementwise" params {ops = ["in0", "gelu"], width = 160 : i64} { }
  rt.kernel @quantize family "quantize_rows" params {group_size = 32 : i64, k = 160 : i64, scale_group = 64 : i64, zero = 8 : i64} { }
  rt.kernel @wide family "quantize_rows" params {group_size = 32 : i64, k = 160 : i64, scale_group = 512 : i64, zero = 8 : i64} { }
  %x = rt.buffer io "x" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %v = rt.buffer constant "v" [#rt.expr<10240>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<10240>] : !rt.buffer<f32>
  %b = rt.buffer constant "b" [#rt.expr<160>] : !rt.buffer<f32>
  %g = rt.buffer transient "" [#rt.expr<T * 160>] : !rt.buffer<f32>
  %u = rt.buffer transient "" [#rt.expr<T * 160>] : !rt.buffer<f32>
  %h = rt.buffer transient "" [#rt.expr<T * 160>] : !rt.buffer<f32>
  %y = rt.buffer transient "" [#rt.expr<T * 160>] : !rt.buffer<f32>
  %a = rt.buffer transient "" [#rt.expr<T * 160>] : !rt.buffer<f32>
  %z = rt.buffer io "z" [#rt.expr<T * 160>] : !rt.buffer<f32>
  %out = rt.buffer io "out" [#rt.expr<T * 160>] : !rt.buffer<f32>
  %codes = rt.buffer io "codes" [#rt.expr<T * 192>] : !rt.buffer<i8>
  %scales = rt.buffer io "scales" [#rt.expr<T * 3>] : !rt.buffer<f32>
  %offsets = rt.buffer io "offsets" [#rt.expr<T * 5>] : !rt.buffer<i32>
  rt.dispatch @linear grid #rt.expr<5> sizes [#rt.expr<T>] reads(%x, %v : !rt.buffer<f32>, !rt.buffer<f32>) writes(%g : !rt.buffer<f32>)
  rt.dispatch @linear grid #rt.expr<5> sizes [#rt.expr<T>] reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%u : !rt.buffer<f32>)
  rt.dispatch @gate grid #rt.expr<T> sizes [#rt.expr<T>] reads(%g, %u : !rt.buffer<f32>, !rt.buffer<f32>) writes(%h : !rt.buffer<f32>)
  rt.dispatch @quantize grid #rt.expr<T> sizes [#rt.expr<T>] reads(%h : !rt.buffer<f32>) writes(%codes, %scales, %offsets : !rt.buffer<i8>, !rt.buffer<f32>, !rt.buffer<i32>)
  rt.dispatch @biased grid #rt.expr<5> sizes [#rt.expr<T>] reads(%x, %w, %b : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
  rt.dispatch @gelu grid #rt.expr<T> sizes [#rt.expr<T>] reads(%y : !rt.buffer<f32>) writes(%a : !rt.buffer<f32>)
  // One scale for more than a work item computes.
  rt.dispatch @wide grid #rt.expr<T> sizes [#rt.expr<T>] reads(%a : !rt.buffer<f32>) writes(%codes, %scales, %offsets : !rt.buffer<i8>, !rt.buffer<f32>, !rt.buffer<i32>)
  rt.dispatch @linear grid #rt.expr<5> sizes [#rt.expr<T>] reads(%x, %v : !rt.buffer<f32>, !rt.buffer<f32>) writes(%z : !rt.buffer<f32>)
  rt.dispatch @gelu grid #rt.expr<T> sizes [#rt.expr<T>] reads(%z : !rt.buffer<f32>) writes(%out : !rt.buffer<f32>)
}
// CHECK-LABEL: rt.program @gated
// CHECK-DAG: rt.kernel @[[GATED:.*]] family "linear" params {bias = false, group_size = 32 : i64, k = 64 : i64, n = 160 : i64, ops = ["in0", "silu", "in1", "mul"], output = "int8", scale_group = 64 : i64, zero = 8 : i64}
// CHECK-DAG: rt.kernel @[[GELU:.*]] family "linear" params {bias = true, k = 64 : i64, n = 160 : i64, ops = ["in0", "gelu"]}
// CHECK: %[[X:.*]] = rt.buffer io "x"
// CHECK: %[[V:.*]] = rt.buffer constant "v"
// CHECK: %[[W:.*]] = rt.buffer constant "w"
// CHECK: %[[B:.*]] = rt.buffer constant "b"
// CHECK: rt.dispatch @[[GATED]] grid <3> {{.*}}reads(%[[X]], %[[V]], %[[W]] : {{.*}}) writes(%{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-NEXT: rt.dispatch @[[GELU]] grid <5> {{.*}}reads(%[[X]], %[[W]], %[[B]] : {{.*}}) writes(%[[A:.*]] :
// CHECK-NEXT: rt.dispatch @wide {{.*}}reads(%[[A]]
// CHECK-NEXT: rt.dispatch @linear {{.*}}writes(%[[Z:.*]] :
// CHECK-NEXT: rt.dispatch @gelu {{.*}}reads(%[[Z]]

// The logits' maxima, a panel of 32 each.
rt.program @logits target "cpu" symbols ["R"] {
  rt.kernel @head family "linear" params {k = 64 : i64, n = 70 : i64} { }
  %x = rt.buffer io "x" [#rt.expr<R * 64>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<6144>] : !rt.buffer<f32>
  %l = rt.buffer io "logits" [#rt.expr<R * 70>] : !rt.buffer<f32>
  rt.dispatch @head grid #rt.expr<3> sizes [#rt.expr<R>] reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%l : !rt.buffer<f32>)
}
// CHECK-LABEL: rt.program @logits
// CHECK: rt.kernel @[[HEAD:.*]] family "linear" params {k = 64 : i64, maxima = true, n = 70 : i64}
// CHECK-DAG: %[[MAXIMA:.*]] = rt.buffer io "logits_maxima"[<R * 3>] : <f32>
// CHECK-DAG: %[[LOGITS:.*]] = rt.buffer io "logits"[<R * 70>] : <f32>
// CHECK: rt.dispatch @[[HEAD]] {{.*}} writes(%[[LOGITS]], %[[MAXIMA]] :
