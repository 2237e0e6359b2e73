; norm
;
;   y = x * rsqrt(mean(x^2) + eps) * weight
;
; CPU, vectors of 64 bytes, masked tails
;   cell 0   reads x: bf16[row, column]
;   cell 1   reads weight: bf16[column]
;   cell 2   writes y: bf16[row, column]
;   cell 3   partitions of part 0
;   cell 4   extent of row
;   cell 5   eps: f32

define void @norm(ptr noalias readonly %parameters, i64 %first, i64 %last, ptr %scratch) #0 {
entry:
  %total.state = alloca <16 x float>
  %total.state.1 = alloca <16 x float>
  %total.state.2 = alloca <16 x float>
  %total.state.3 = alloca <16 x float>
  %partitions.cell = getelementptr i64, ptr %parameters, i64 3
  %partitions = load i64, ptr %partitions.cell, align 8
  %min.s0 = icmp sle i64 %last, %partitions
  %min = select i1 %min.s0, i64 %last, i64 %partitions
  %less = icmp slt i64 %first, %min
  %row.cell = getelementptr i64, ptr %parameters, i64 4
  %row = load i64, ptr %row.cell, align 8
  %sub = sub i64 %partitions, 1
  %add = add i64 %row, %sub
  %floor_div.s0 = icmp eq i64 %partitions, 0
  %floor_div.s1 = select i1 %floor_div.s0, i64 1, i64 %partitions
  %floor_div.s2 = udiv i64 %add, %floor_div.s1
  %floor_div = select i1 %floor_div.s0, i64 0, i64 %floor_div.s2
  %const_m0 = shufflevector <1 x float> <float -0.0>, <1 x float> poison, <16 x i32> zeroinitializer
  %x.base.cell = getelementptr i64, ptr %parameters, i64 0
  %x.base = load ptr, ptr %x.base.cell, align 8
  %eps.cell = getelementptr i64, ptr %parameters, i64 5
  %eps = load float, ptr %eps.cell, align 8
  %y.base.cell = getelementptr i64, ptr %parameters, i64 2
  %y.base = load ptr, ptr %y.base.cell, align 8
  %weight.base.cell = getelementptr i64, ptr %parameters, i64 1
  %weight.base = load ptr, ptr %weight.base.cell, align 8
  br i1 %less, label %if.0.then, label %if.0.done
if.0.then:

  ; part rows
  %partition.any = icmp slt i64 %first, %min
  br i1 %partition.any, label %partition.loop, label %partition.done
partition.loop:
  %partition = phi i64 [ %first, %if.0.then ], [ %partition.next, %partition.latch ]
  %mul = mul i64 %partition, %floor_div
  %min.1.s0 = icmp sle i64 %mul, %row
  %min.1 = select i1 %min.1.s0, i64 %mul, i64 %row
  %add.1 = add i64 %min.1, %floor_div
  %min.2.s0 = icmp sle i64 %add.1, %row
  %min.2 = select i1 %min.2.s0, i64 %add.1, i64 %row
  %row.1.any = icmp slt i64 %min.1, %min.2
  br i1 %row.1.any, label %row.1.loop, label %row.1.done
row.1.loop:
  %row.1 = phi i64 [ %min.1, %partition.loop ], [ %row.1.next, %row.1.latch ]
  store <16 x float> %const_m0, ptr %total.state
  store <16 x float> %const_m0, ptr %total.state.1
  store <16 x float> %const_m0, ptr %total.state.2
  store <16 x float> %const_m0, ptr %total.state.3

  ; column by lanes: 4 x 16
  %mul.1 = mul i64 %row.1, 4096
  %x.row = getelementptr i16, ptr %x.base, i64 %mul.1
  %column.any = icmp slt i64 0, 4096
  br i1 %column.any, label %column.loop, label %column.done
column.loop:
  %column = phi i64 [ 0, %row.1.loop ], [ %column.next, %column.latch ]
  %x.at = getelementptr i16, ptr %x.row, i64 %column
  %x = load <16 x i16>, ptr %x.at, align 2
  %x.1 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x)
  %total = load <16 x float>, ptr %total.state
  %total.1 = call <16 x float> @llvm.fma.v16f32(<16 x float> %x.1, <16 x float> %x.1, <16 x float> %total)
  store <16 x float> %total.1, ptr %total.state
  %add.2 = add i64 %column, 16
  %x.at.1 = getelementptr i16, ptr %x.row, i64 %add.2
  %x.2 = load <16 x i16>, ptr %x.at.1, align 2
  %x.3 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x.2)
  %total.2 = load <16 x float>, ptr %total.state.1
  %total.3 = call <16 x float> @llvm.fma.v16f32(<16 x float> %x.3, <16 x float> %x.3, <16 x float> %total.2)
  store <16 x float> %total.3, ptr %total.state.1
  %add.3 = add i64 %column, 32
  %x.at.2 = getelementptr i16, ptr %x.row, i64 %add.3
  %x.4 = load <16 x i16>, ptr %x.at.2, align 2
  %x.5 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x.4)
  %total.4 = load <16 x float>, ptr %total.state.2
  %total.5 = call <16 x float> @llvm.fma.v16f32(<16 x float> %x.5, <16 x float> %x.5, <16 x float> %total.4)
  store <16 x float> %total.5, ptr %total.state.2
  %add.4 = add i64 %column, 48
  %x.at.3 = getelementptr i16, ptr %x.row, i64 %add.4
  %x.6 = load <16 x i16>, ptr %x.at.3, align 2
  %x.7 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x.6)
  %total.6 = load <16 x float>, ptr %total.state.3
  %total.7 = call <16 x float> @llvm.fma.v16f32(<16 x float> %x.7, <16 x float> %x.7, <16 x float> %total.6)
  store <16 x float> %total.7, ptr %total.state.3
  br label %column.latch
column.latch:
  %column.next = add nsw i64 %column, 64
  %column.more = icmp slt i64 %column.next, 4096
  br i1 %column.more, label %column.loop, label %column.done
column.done:
  %total.8 = load <16 x float>, ptr %total.state
  %total.9 = load <16 x float>, ptr %total.state.1
  %total.10 = load <16 x float>, ptr %total.state.2
  %total.11 = load <16 x float>, ptr %total.state.3
  %total.12 = fadd <16 x float> %total.8, %total.9
  %total.13 = fadd <16 x float> %total.10, %total.11
  %total.14 = fadd <16 x float> %total.12, %total.13
  %low = shufflevector <16 x float> %total.14, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %high = shufflevector <16 x float> %total.14, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %total.15 = fadd <8 x float> %low, %high
  %low.1 = shufflevector <8 x float> %total.15, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %high.1 = shufflevector <8 x float> %total.15, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %total.16 = fadd <4 x float> %low.1, %high.1
  %low.2 = shufflevector <4 x float> %total.16, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %high.2 = shufflevector <4 x float> %total.16, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %total.17 = fadd <2 x float> %low.2, %high.2
  %lane = extractelement <2 x float> %total.17, i32 0
  %lane.1 = extractelement <2 x float> %total.17, i32 1
  %total.18 = fadd float %lane, %lane.1
  %add.5 = fadd float %total.18, 0.0
  %div = fdiv float %add.5, 4096.0
  %add.6 = fadd float %div, %eps
  %r = call float @tigon_rsqrt_f32_v1(float %add.6)

  ; column by lanes: 4 x 16
  %r.all.one = insertelement <16 x float> poison, float %r, i32 0
  %r.all = shufflevector <16 x float> %r.all.one, <16 x float> poison, <16 x i32> zeroinitializer
  %y.row = getelementptr i16, ptr %y.base, i64 %mul.1
  %column.1.any = icmp slt i64 0, 4096
  br i1 %column.1.any, label %column.1.loop, label %column.1.done
column.1.loop:
  %column.1 = phi i64 [ 0, %column.done ], [ %column.1.next, %column.1.latch ]
  %x.at.4 = getelementptr i16, ptr %x.row, i64 %column.1
  %x.8 = load <16 x i16>, ptr %x.at.4, align 2
  %x.9 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x.8)
  %mul.2 = fmul <16 x float> %x.9, %r.all
  %weight.at = getelementptr i16, ptr %weight.base, i64 %column.1
  %weight = load <16 x i16>, ptr %weight.at, align 2
  %weight.1 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %weight)
  %mul.3 = fmul <16 x float> %mul.2, %weight.1
  %bf16 = call <16 x i16> @tigon_narrow_bf16_f32_v16(<16 x float> %mul.3)
  %y.at = getelementptr i16, ptr %y.row, i64 %column.1
  store <16 x i16> %bf16, ptr %y.at, align 2
  %add.7 = add i64 %column.1, 16
  %x.at.5 = getelementptr i16, ptr %x.row, i64 %add.7
  %x.10 = load <16 x i16>, ptr %x.at.5, align 2
  %x.11 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x.10)
  %mul.4 = fmul <16 x float> %x.11, %r.all
  %weight.at.1 = getelementptr i16, ptr %weight.base, i64 %add.7
  %weight.2 = load <16 x i16>, ptr %weight.at.1, align 2
  %weight.3 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %weight.2)
  %mul.5 = fmul <16 x float> %mul.4, %weight.3
  %bf16.1 = call <16 x i16> @tigon_narrow_bf16_f32_v16(<16 x float> %mul.5)
  %y.at.1 = getelementptr i16, ptr %y.row, i64 %add.7
  store <16 x i16> %bf16.1, ptr %y.at.1, align 2
  %add.8 = add i64 %column.1, 32
  %x.at.6 = getelementptr i16, ptr %x.row, i64 %add.8
  %x.12 = load <16 x i16>, ptr %x.at.6, align 2
  %x.13 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x.12)
  %mul.6 = fmul <16 x float> %x.13, %r.all
  %weight.at.2 = getelementptr i16, ptr %weight.base, i64 %add.8
  %weight.4 = load <16 x i16>, ptr %weight.at.2, align 2
  %weight.5 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %weight.4)
  %mul.7 = fmul <16 x float> %mul.6, %weight.5
  %bf16.2 = call <16 x i16> @tigon_narrow_bf16_f32_v16(<16 x float> %mul.7)
  %y.at.2 = getelementptr i16, ptr %y.row, i64 %add.8
  store <16 x i16> %bf16.2, ptr %y.at.2, align 2
  %add.9 = add i64 %column.1, 48
  %x.at.7 = getelementptr i16, ptr %x.row, i64 %add.9
  %x.14 = load <16 x i16>, ptr %x.at.7, align 2
  %x.15 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x.14)
  %mul.8 = fmul <16 x float> %x.15, %r.all
  %weight.at.3 = getelementptr i16, ptr %weight.base, i64 %add.9
  %weight.6 = load <16 x i16>, ptr %weight.at.3, align 2
  %weight.7 = call <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %weight.6)
  %mul.9 = fmul <16 x float> %mul.8, %weight.7
  %bf16.3 = call <16 x i16> @tigon_narrow_bf16_f32_v16(<16 x float> %mul.9)
  %y.at.3 = getelementptr i16, ptr %y.row, i64 %add.9
  store <16 x i16> %bf16.3, ptr %y.at.3, align 2
  br label %column.1.latch
column.1.latch:
  %column.1.next = add nsw i64 %column.1, 64
  %column.1.more = icmp slt i64 %column.1.next, 4096
  br i1 %column.1.more, label %column.1.loop, label %column.1.done
column.1.done:
  br label %row.1.latch
row.1.latch:
  %row.1.next = add nsw i64 %row.1, 1
  %row.1.more = icmp slt i64 %row.1.next, %min.2
  br i1 %row.1.more, label %row.1.loop, label %row.1.done
row.1.done:
  br label %partition.latch
partition.latch:
  %partition.next = add nsw i64 %partition, 1
  %partition.more = icmp slt i64 %partition.next, %min
  br i1 %partition.more, label %partition.loop, label %partition.done
partition.done:
  br label %if.0.done
if.0.done:
  ret void
}

declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare float @llvm.sqrt.f32(float)

; the f32 of a bf16 held in i16
define internal <16 x float> @tigon_widen_bf16_f32_v16(<16 x i16> %x) alwaysinline nounwind {
  %extended = zext <16 x i16> %x to <16 x i32>
  %half_word = shufflevector <1 x i32> <i32 16>, <1 x i32> poison, <16 x i32> zeroinitializer  ; 0x10
  %bits = shl <16 x i32> %extended, %half_word
  %result = bitcast <16 x i32> %bits to <16 x float>
  ret <16 x float> %result
}

; 1 / sqrt(x)
define internal float @tigon_rsqrt_f32_v1(float %x) alwaysinline nounwind {
  %root = call float @llvm.sqrt.f32(float %x)
  %result = fdiv float 0x3FF0000000000000, %root
  ret float %result
}

; the bf16, held in i16, nearest to an f32, ties to even
define internal <16 x i16> @tigon_narrow_bf16_f32_v16(<16 x float> %x) alwaysinline nounwind {
  %bits = bitcast <16 x float> %x to <16 x i32>
  %half_word = shufflevector <1 x i32> <i32 16>, <1 x i32> poison, <16 x i32> zeroinitializer  ; 0x10
  %upper = lshr <16 x i32> %bits, %half_word
  %bit_one = shufflevector <1 x i32> <i32 1>, <1 x i32> poison, <16 x i32> zeroinitializer  ; 0x1
  %last_kept = and <16 x i32> %upper, %bit_one
  %under_half = shufflevector <1 x i32> <i32 32767>, <1 x i32> poison, <16 x i32> zeroinitializer  ; 0x7fff
  %biased = add <16 x i32> %bits, %under_half
  %carried = add <16 x i32> %biased, %last_kept
  %rounded = lshr <16 x i32> %carried, %half_word
  %quiet_bit = shufflevector <1 x i32> <i32 64>, <1 x i32> poison, <16 x i32> zeroinitializer  ; 0x40
  %quiet = or <16 x i32> %upper, %quiet_bit
  %is_nan = fcmp uno <16 x float> %x, %x
  %chosen = select <16 x i1> %is_nan, <16 x i32> %quiet, <16 x i32> %rounded
  %result = trunc <16 x i32> %chosen to <16 x i16>
  ret <16 x i16> %result
}

attributes #0 = { nounwind "instcombine-no-verify-fixpoint" }
