// RUN: llm-opt %s --split-input-file --verify-diagnostics --llm-compile-gpu-kernels

// expected-error @below {{unknown GPU architecture 'sm_42'; known are sm_80, sm_86,}}
gpu.module @kernels [#nvvm.target<chip = "sm_42">] {
}

// -----

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  // expected-error @below {{argument 0 is 'memref<?xf32>'; kernels take contiguous buffers with a static bound}}
  gpu.func @dynamic(%x: memref<?xf32>) kernel {
    gpu.return
  }
}

// -----

// A function of the device library, which is not linked.
gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @exponential(%x: memref<32xf32, #gpu.address_space<global>>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<32xf32, #gpu.address_space<global>>
    // expected-error @below {{calls '__nv_expf', which is not defined in the GPU module}}
    %e = math.exp %v : f32
    memref.store %e, %x[%c0] : memref<32xf32, #gpu.address_space<global>>
    gpu.return
  }
}

// -----

// Conversions leave this behind and succeed.
gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @leftover(%x: memref<32xf32>) kernel {
    %zero = arith.constant 0.0 : f32
    // expected-error @below {{'linalg.fill' cannot be lowered for the GPU}}
    linalg.fill ins(%zero : f32) outs(%x : memref<32xf32>)
    gpu.return
  }
}

// -----

// LLVM would end the process.
gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @fp8(%x: memref<2xf32, #gpu.address_space<global>>, %o: memref<2xi8, #gpu.address_space<global>>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<2xf32, #gpu.address_space<global>>
    // expected-error @below {{needs fp8, which sm_80 does not have}}
    %q = nvvm.convert.f32x2.to.f8x2 %v, %v {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : vector<2xi8> (f8E4M3FN)
    vector.store %q, %o[%c0] : memref<2xi8, #gpu.address_space<global>>, vector<2xi8>
    gpu.return
  }
}

// -----

// expected-error @below {{uses 65536 bytes of shared memory, sm_80 has 49152 for a block}}
gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @shared(%x: memref<32xf32, #gpu.address_space<global>>)
      workgroup(%s: memref<16384xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %s[%c0] : memref<16384xf32, #gpu.address_space<workgroup>>
    memref.store %v, %x[%c0] : memref<32xf32, #gpu.address_space<global>>
    gpu.return
  }
}

// -----

// expected-error @below {{must have one #nvvm.target}}
gpu.module @kernels [#nvvm.target<chip = "sm_80">, #nvvm.target<chip = "sm_90">] {
}
