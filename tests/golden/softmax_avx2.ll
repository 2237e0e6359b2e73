; softmax
;
;   y = softmax(x)
;
; CPU, vectors of 32 bytes, scalar tails
;   cell 0   reads x: f32[row, column]
;   cell 1   writes y: f32[row, column]
;   cell 2   stride of x, dimension 0
;   cell 3   stride of y, dimension 0
;   cell 4   partitions of part 0
;   cell 5   extent of row
;   cell 6   extent of column

define void @softmax(ptr noalias readonly %parameters, i64 %first, i64 %last, ptr %scratch) #0 {
entry:
  %total.state = alloca <8 x float>
  %total_1.state = alloca <8 x float>
  %total.state.1 = alloca <8 x float>
  %total_1.state.1 = alloca <8 x float>
  %total.state.2 = alloca float
  %total_1.state.2 = alloca float
  %partitions.cell = getelementptr i64, ptr %parameters, i64 4
  %partitions = load i64, ptr %partitions.cell, align 8
  %min.s0 = icmp sle i64 %last, %partitions
  %min = select i1 %min.s0, i64 %last, i64 %partitions
  %less = icmp slt i64 %first, %min
  %row.cell = getelementptr i64, ptr %parameters, i64 5
  %row = load i64, ptr %row.cell, align 8
  %sub = sub i64 %partitions, 1
  %add = add i64 %row, %sub
  %floor_div.s0 = icmp eq i64 %partitions, 0
  %floor_div.s1 = select i1 %floor_div.s0, i64 1, i64 %partitions
  %floor_div.s2 = udiv i64 %add, %floor_div.s1
  %floor_div = select i1 %floor_div.s0, i64 0, i64 %floor_div.s2
  %column.cell = getelementptr i64, ptr %parameters, i64 6
  %column = load i64, ptr %column.cell, align 8
  %const_minf = shufflevector <1 x float> <float 0xFFF0000000000000>, <1 x float> poison, <8 x i32> zeroinitializer
  %const_0 = shufflevector <1 x float> <float 0.0>, <1 x float> poison, <8 x i32> zeroinitializer
  %column.blocks = and i64 %column, -64
  %column.vectors = and i64 %column, -8
  %x.stride0.cell = getelementptr i64, ptr %parameters, i64 2
  %x.stride0 = load i64, ptr %x.stride0.cell, align 8
  %x.base.cell = getelementptr i64, ptr %parameters, i64 0
  %x.base = load ptr, ptr %x.base.cell, align 8
  %const_1 = shufflevector <1 x float> <float 1.0>, <1 x float> poison, <8 x i32> zeroinitializer
  %const_1.1 = shufflevector <1 x float> <float 1.0>, <1 x float> poison, <4 x i32> zeroinitializer
  %const_minf.1 = shufflevector <1 x float> <float 0xFFF0000000000000>, <1 x float> poison, <4 x i32> zeroinitializer
  %const_0.1 = shufflevector <1 x float> <float 0.0>, <1 x float> poison, <4 x i32> zeroinitializer
  %const_1.2 = shufflevector <1 x float> <float 1.0>, <1 x float> poison, <2 x i32> zeroinitializer
  %const_minf.2 = shufflevector <1 x float> <float 0xFFF0000000000000>, <1 x float> poison, <2 x i32> zeroinitializer
  %const_0.2 = shufflevector <1 x float> <float 0.0>, <1 x float> poison, <2 x i32> zeroinitializer
  %column.blocks.1 = and i64 %column, -32
  %y.base.cell = getelementptr i64, ptr %parameters, i64 1
  %y.base = load ptr, ptr %y.base.cell, align 8
  %y.stride0.cell = getelementptr i64, ptr %parameters, i64 3
  %y.stride0 = load i64, ptr %y.stride0.cell, align 8
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
  store <8 x float> %const_minf, ptr %total.state
  store <8 x float> %const_0, ptr %total_1.state
  store <8 x float> %const_minf, ptr %total.state.1
  store <8 x float> %const_0, ptr %total_1.state.1
  store float 0xFFF0000000000000, ptr %total.state.2
  store float 0.0, ptr %total_1.state.2

  ; column by lanes: 8 x 8
  %mul.1 = mul i64 %row.1, %x.stride0
  %x.row = getelementptr float, ptr %x.base, i64 %mul.1
  %column.1.any = icmp slt i64 0, %column.blocks
  br i1 %column.1.any, label %column.1.loop, label %column.1.done
column.1.loop:
  %column.1 = phi i64 [ 0, %row.1.loop ], [ %column.1.next, %column.1.latch ]
  %add.2 = add i64 %column.1, 8
  %add.3 = add i64 %column.1, 16
  %add.4 = add i64 %column.1, 24
  %x.at = getelementptr float, ptr %x.row, i64 %column.1
  %x.at.1 = getelementptr float, ptr %x.row, i64 %add.2
  %x.at.2 = getelementptr float, ptr %x.row, i64 %add.3
  %x.at.3 = getelementptr float, ptr %x.row, i64 %add.4
  %x = load <8 x float>, ptr %x.at, align 4
  %x.1 = load <8 x float>, ptr %x.at.1, align 4
  %x.2 = load <8 x float>, ptr %x.at.2, align 4
  %x.3 = load <8 x float>, ptr %x.at.3, align 4
  %total = load <8 x float>, ptr %total.state
  %total.1 = load <8 x float>, ptr %total_1.state
  %less.1 = fcmp olt <8 x float> %x, %x.1
  %where = select <8 x i1> %less.1, <8 x float> %x, <8 x float> %x.1
  %where.1 = select <8 x i1> %less.1, <8 x float> %x.1, <8 x float> %x
  %less.2 = fcmp olt <8 x float> %x.2, %x.3
  %where.2 = select <8 x i1> %less.2, <8 x float> %x.2, <8 x float> %x.3
  %where.3 = select <8 x i1> %less.2, <8 x float> %x.3, <8 x float> %x.2
  %less.3 = fcmp olt <8 x float> %where.1, %where.3
  %where.4 = select <8 x i1> %less.3, <8 x float> %where.1, <8 x float> %where.3
  %where.5 = select <8 x i1> %less.3, <8 x float> %where.3, <8 x float> %where.1
  %less.4 = fcmp olt <8 x float> %total, %where.5
  %where.6 = select <8 x i1> %less.4, <8 x float> %total, <8 x float> %where.5
  %total.2 = select <8 x i1> %less.4, <8 x float> %where.5, <8 x float> %total
  %is_finite.s0 = call <8 x float> @llvm.fabs.v8f32(<8 x float> %total.2)
  %is_finite = fcmp olt <8 x float> %is_finite.s0, <float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000>
  %where.7 = select <8 x i1> %is_finite, <8 x float> %total.2, <8 x float> %const_0
  %sub.1 = fsub <8 x float> %where, %where.7
  %exp = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.1)
  %sub.2 = fsub <8 x float> %where.2, %where.7
  %exp.1 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.2)
  %sub.3 = fsub <8 x float> %where.4, %where.7
  %exp.2 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.3)
  %sub.4 = fsub <8 x float> %where.6, %where.7
  %exp.3 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.4)
  %add.5 = fadd <8 x float> %exp, %exp.1
  %add.6 = fadd <8 x float> %exp.2, %exp.3
  %add.7 = fadd <8 x float> %add.5, %add.6
  %equal = fcmp oeq <8 x float> %total, %total.2
  %where.8 = select <8 x i1> %is_finite, <8 x float> %exp.3, <8 x float> %const_0
  %where.9 = select <8 x i1> %equal, <8 x float> %const_1, <8 x float> %where.8
  %total.3 = call <8 x float> @llvm.fma.v8f32(<8 x float> %total.1, <8 x float> %where.9, <8 x float> %add.7)
  store <8 x float> %total.2, ptr %total.state
  store <8 x float> %total.3, ptr %total_1.state
  %add.8 = add i64 %column.1, 32
  %add.9 = add i64 %column.1, 40
  %add.10 = add i64 %column.1, 48
  %add.11 = add i64 %column.1, 56
  %x.at.4 = getelementptr float, ptr %x.row, i64 %add.8
  %x.at.5 = getelementptr float, ptr %x.row, i64 %add.9
  %x.at.6 = getelementptr float, ptr %x.row, i64 %add.10
  %x.at.7 = getelementptr float, ptr %x.row, i64 %add.11
  %x.4 = load <8 x float>, ptr %x.at.4, align 4
  %x.5 = load <8 x float>, ptr %x.at.5, align 4
  %x.6 = load <8 x float>, ptr %x.at.6, align 4
  %x.7 = load <8 x float>, ptr %x.at.7, align 4
  %total.4 = load <8 x float>, ptr %total.state.1
  %total.5 = load <8 x float>, ptr %total_1.state.1
  %less.5 = fcmp olt <8 x float> %x.4, %x.5
  %where.10 = select <8 x i1> %less.5, <8 x float> %x.4, <8 x float> %x.5
  %where.11 = select <8 x i1> %less.5, <8 x float> %x.5, <8 x float> %x.4
  %less.6 = fcmp olt <8 x float> %x.6, %x.7
  %where.12 = select <8 x i1> %less.6, <8 x float> %x.6, <8 x float> %x.7
  %where.13 = select <8 x i1> %less.6, <8 x float> %x.7, <8 x float> %x.6
  %less.7 = fcmp olt <8 x float> %where.11, %where.13
  %where.14 = select <8 x i1> %less.7, <8 x float> %where.11, <8 x float> %where.13
  %where.15 = select <8 x i1> %less.7, <8 x float> %where.13, <8 x float> %where.11
  %less.8 = fcmp olt <8 x float> %total.4, %where.15
  %where.16 = select <8 x i1> %less.8, <8 x float> %total.4, <8 x float> %where.15
  %total.6 = select <8 x i1> %less.8, <8 x float> %where.15, <8 x float> %total.4
  %is_finite.1.s0 = call <8 x float> @llvm.fabs.v8f32(<8 x float> %total.6)
  %is_finite.1 = fcmp olt <8 x float> %is_finite.1.s0, <float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000, float 0x7FF0000000000000>
  %where.17 = select <8 x i1> %is_finite.1, <8 x float> %total.6, <8 x float> %const_0
  %sub.5 = fsub <8 x float> %where.10, %where.17
  %exp.4 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.5)
  %sub.6 = fsub <8 x float> %where.12, %where.17
  %exp.5 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.6)
  %sub.7 = fsub <8 x float> %where.14, %where.17
  %exp.6 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.7)
  %sub.8 = fsub <8 x float> %where.16, %where.17
  %exp.7 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.8)
  %add.12 = fadd <8 x float> %exp.4, %exp.5
  %add.13 = fadd <8 x float> %exp.6, %exp.7
  %add.14 = fadd <8 x float> %add.12, %add.13
  %equal.1 = fcmp oeq <8 x float> %total.4, %total.6
  %where.18 = select <8 x i1> %is_finite.1, <8 x float> %exp.7, <8 x float> %const_0
  %where.19 = select <8 x i1> %equal.1, <8 x float> %const_1, <8 x float> %where.18
  %total.7 = call <8 x float> @llvm.fma.v8f32(<8 x float> %total.5, <8 x float> %where.19, <8 x float> %add.14)
  store <8 x float> %total.6, ptr %total.state.1
  store <8 x float> %total.7, ptr %total_1.state.1
  br label %column.1.latch
column.1.latch:
  %column.1.next = add nsw i64 %column.1, 64
  %column.1.more = icmp slt i64 %column.1.next, %column.blocks
  br i1 %column.1.more, label %column.1.loop, label %column.1.done
column.1.done:
  %column.2.any = icmp slt i64 %column.blocks, %column.vectors
  br i1 %column.2.any, label %column.2.loop, label %column.2.done
column.2.loop:
  %column.2 = phi i64 [ %column.blocks, %column.1.done ], [ %column.2.next, %column.2.latch ]
  %x.at.8 = getelementptr float, ptr %x.row, i64 %column.2
  %x.8 = load <8 x float>, ptr %x.at.8, align 4
  %total.8 = load <8 x float>, ptr %total.state
  %total.9 = load <8 x float>, ptr %total_1.state
  %less_equal = fcmp ole <8 x float> %x.8, %total.8
  %total.10.s0 = fcmp ogt <8 x float> %x.8, %total.8
  %total.10.s1 = select <8 x i1> %total.10.s0, <8 x float> %x.8, <8 x float> %total.8
  %total.10.s2 = fcmp uno <8 x float> %x.8, %x.8
  %total.10 = select <8 x i1> %total.10.s2, <8 x float> %x.8, <8 x float> %total.10.s1
  %where.20 = select <8 x i1> %less_equal, <8 x float> %x.8, <8 x float> %total.8
  %equal.2 = fcmp oeq <8 x float> %total.8, %x.8
  %sub.9 = fsub <8 x float> %where.20, %total.10
  %exp.8 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.9)
  %where.21 = select <8 x i1> %equal.2, <8 x float> %const_1, <8 x float> %exp.8
  %equal.3 = fcmp oeq <8 x float> %where.20, %const_minf
  %where.22 = select <8 x i1> %equal.3, <8 x float> %const_0, <8 x float> %where.21
  %where.23 = select <8 x i1> %less_equal, <8 x float> %total.9, <8 x float> %const_0
  %where.24 = select <8 x i1> %less_equal, <8 x float> %const_0, <8 x float> %total.9
  %add.15 = fadd <8 x float> %const_1, %where.24
  %total.11 = call <8 x float> @llvm.fma.v8f32(<8 x float> %add.15, <8 x float> %where.22, <8 x float> %where.23)
  store <8 x float> %total.10, ptr %total.state
  store <8 x float> %total.11, ptr %total_1.state
  br label %column.2.latch
column.2.latch:
  %column.2.next = add nsw i64 %column.2, 8
  %column.2.more = icmp slt i64 %column.2.next, %column.vectors
  br i1 %column.2.more, label %column.2.loop, label %column.2.done
column.2.done:
  %column.3.any = icmp slt i64 %column.vectors, %column
  br i1 %column.3.any, label %column.3.loop, label %column.3.done
column.3.loop:
  %column.3 = phi i64 [ %column.vectors, %column.2.done ], [ %column.3.next, %column.3.latch ]
  %x.at.9 = getelementptr float, ptr %x.row, i64 %column.3
  %x.9 = load float, ptr %x.at.9, align 4
  %total.12 = load float, ptr %total.state.2
  %total.13 = load float, ptr %total_1.state.2
  %less_equal.1 = fcmp ole float %x.9, %total.12
  %total.14.s0 = fcmp ogt float %x.9, %total.12
  %total.14.s1 = select i1 %total.14.s0, float %x.9, float %total.12
  %total.14.s2 = fcmp uno float %x.9, %x.9
  %total.14 = select i1 %total.14.s2, float %x.9, float %total.14.s1
  %where.25 = select i1 %less_equal.1, float %x.9, float %total.12
  %equal.4 = fcmp oeq float %total.12, %x.9
  %sub.10 = fsub float %where.25, %total.14
  %exp.9 = call float @tigon_exp_f32_v1(float %sub.10)
  %where.26 = select i1 %equal.4, float 1.0, float %exp.9
  %equal.5 = fcmp oeq float %where.25, 0xFFF0000000000000
  %where.27 = select i1 %equal.5, float 0.0, float %where.26
  %where.28 = select i1 %less_equal.1, float %total.13, float 0.0
  %where.29 = select i1 %less_equal.1, float 0.0, float %total.13
  %add.16 = fadd float 1.0, %where.29
  %total.15 = call float @llvm.fma.f32(float %add.16, float %where.27, float %where.28)
  store float %total.14, ptr %total.state.2
  store float %total.15, ptr %total_1.state.2
  br label %column.3.latch
column.3.latch:
  %column.3.next = add nsw i64 %column.3, 1
  %column.3.more = icmp slt i64 %column.3.next, %column
  br i1 %column.3.more, label %column.3.loop, label %column.3.done
column.3.done:
  %total.16 = load <8 x float>, ptr %total.state
  %total.17 = load <8 x float>, ptr %total_1.state
  %total.18 = load <8 x float>, ptr %total.state.1
  %total.19 = load <8 x float>, ptr %total_1.state.1
  %less_equal.2 = fcmp ole <8 x float> %total.18, %total.16
  %total.20.s0 = fcmp ogt <8 x float> %total.18, %total.16
  %total.20.s1 = select <8 x i1> %total.20.s0, <8 x float> %total.18, <8 x float> %total.16
  %total.20.s2 = fcmp uno <8 x float> %total.18, %total.18
  %total.20 = select <8 x i1> %total.20.s2, <8 x float> %total.18, <8 x float> %total.20.s1
  %where.30 = select <8 x i1> %less_equal.2, <8 x float> %total.18, <8 x float> %total.16
  %equal.6 = fcmp oeq <8 x float> %total.16, %total.18
  %sub.11 = fsub <8 x float> %where.30, %total.20
  %exp.10 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.11)
  %where.31 = select <8 x i1> %equal.6, <8 x float> %const_1, <8 x float> %exp.10
  %equal.7 = fcmp oeq <8 x float> %where.30, %const_minf
  %where.32 = select <8 x i1> %equal.7, <8 x float> %const_0, <8 x float> %where.31
  %where.33 = select <8 x i1> %less_equal.2, <8 x float> %total.17, <8 x float> %total.19
  %where.34 = select <8 x i1> %less_equal.2, <8 x float> %total.19, <8 x float> %total.17
  %add.17 = fadd <8 x float> %const_1, %where.34
  %total.21 = call <8 x float> @llvm.fma.v8f32(<8 x float> %add.17, <8 x float> %where.32, <8 x float> %where.33)
  %low = shufflevector <8 x float> %total.20, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %high = shufflevector <8 x float> %total.20, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %low.1 = shufflevector <8 x float> %total.21, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %high.1 = shufflevector <8 x float> %total.21, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %less_equal.3 = fcmp ole <4 x float> %high, %low
  %total.22.s0 = fcmp ogt <4 x float> %high, %low
  %total.22.s1 = select <4 x i1> %total.22.s0, <4 x float> %high, <4 x float> %low
  %total.22.s2 = fcmp uno <4 x float> %high, %high
  %total.22 = select <4 x i1> %total.22.s2, <4 x float> %high, <4 x float> %total.22.s1
  %where.35 = select <4 x i1> %less_equal.3, <4 x float> %high, <4 x float> %low
  %equal.8 = fcmp oeq <4 x float> %low, %high
  %sub.12 = fsub <4 x float> %where.35, %total.22
  %exp.11 = call <4 x float> @tigon_exp_f32_v4(<4 x float> %sub.12)
  %where.36 = select <4 x i1> %equal.8, <4 x float> %const_1.1, <4 x float> %exp.11
  %equal.9 = fcmp oeq <4 x float> %where.35, %const_minf.1
  %where.37 = select <4 x i1> %equal.9, <4 x float> %const_0.1, <4 x float> %where.36
  %where.38 = select <4 x i1> %less_equal.3, <4 x float> %low.1, <4 x float> %high.1
  %where.39 = select <4 x i1> %less_equal.3, <4 x float> %high.1, <4 x float> %low.1
  %add.18 = fadd <4 x float> %const_1.1, %where.39
  %total.23 = call <4 x float> @llvm.fma.v4f32(<4 x float> %add.18, <4 x float> %where.37, <4 x float> %where.38)
  %low.2 = shufflevector <4 x float> %total.22, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %high.2 = shufflevector <4 x float> %total.22, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %low.3 = shufflevector <4 x float> %total.23, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %high.3 = shufflevector <4 x float> %total.23, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %less_equal.4 = fcmp ole <2 x float> %high.2, %low.2
  %total.24.s0 = fcmp ogt <2 x float> %high.2, %low.2
  %total.24.s1 = select <2 x i1> %total.24.s0, <2 x float> %high.2, <2 x float> %low.2
  %total.24.s2 = fcmp uno <2 x float> %high.2, %high.2
  %total.24 = select <2 x i1> %total.24.s2, <2 x float> %high.2, <2 x float> %total.24.s1
  %where.40 = select <2 x i1> %less_equal.4, <2 x float> %high.2, <2 x float> %low.2
  %equal.10 = fcmp oeq <2 x float> %low.2, %high.2
  %sub.13 = fsub <2 x float> %where.40, %total.24
  %exp.12 = call <2 x float> @tigon_exp_f32_v2(<2 x float> %sub.13)
  %where.41 = select <2 x i1> %equal.10, <2 x float> %const_1.2, <2 x float> %exp.12
  %equal.11 = fcmp oeq <2 x float> %where.40, %const_minf.2
  %where.42 = select <2 x i1> %equal.11, <2 x float> %const_0.2, <2 x float> %where.41
  %where.43 = select <2 x i1> %less_equal.4, <2 x float> %low.3, <2 x float> %high.3
  %where.44 = select <2 x i1> %less_equal.4, <2 x float> %high.3, <2 x float> %low.3
  %add.19 = fadd <2 x float> %const_1.2, %where.44
  %total.25 = call <2 x float> @llvm.fma.v2f32(<2 x float> %add.19, <2 x float> %where.42, <2 x float> %where.43)
  %lane = extractelement <2 x float> %total.24, i32 0
  %lane.1 = extractelement <2 x float> %total.24, i32 1
  %lane.2 = extractelement <2 x float> %total.25, i32 0
  %lane.3 = extractelement <2 x float> %total.25, i32 1
  %less_equal.5 = fcmp ole float %lane.1, %lane
  %total.26.s0 = fcmp ogt float %lane.1, %lane
  %total.26.s1 = select i1 %total.26.s0, float %lane.1, float %lane
  %total.26.s2 = fcmp uno float %lane.1, %lane.1
  %total.26 = select i1 %total.26.s2, float %lane.1, float %total.26.s1
  %where.45 = select i1 %less_equal.5, float %lane.1, float %lane
  %equal.12 = fcmp oeq float %lane, %lane.1
  %sub.14 = fsub float %where.45, %total.26
  %exp.13 = call float @tigon_exp_f32_v1(float %sub.14)
  %where.46 = select i1 %equal.12, float 1.0, float %exp.13
  %equal.13 = fcmp oeq float %where.45, 0xFFF0000000000000
  %where.47 = select i1 %equal.13, float 0.0, float %where.46
  %where.48 = select i1 %less_equal.5, float %lane.2, float %lane.3
  %where.49 = select i1 %less_equal.5, float %lane.3, float %lane.2
  %add.20 = fadd float 1.0, %where.49
  %total.27 = call float @llvm.fma.f32(float %add.20, float %where.47, float %where.48)
  %total.28 = load float, ptr %total.state.2
  %total.29 = load float, ptr %total_1.state.2
  %less_equal.6 = fcmp ole float %total.28, %total.26
  %total.30.s0 = fcmp ogt float %total.28, %total.26
  %total.30.s1 = select i1 %total.30.s0, float %total.28, float %total.26
  %total.30.s2 = fcmp uno float %total.28, %total.28
  %total.30 = select i1 %total.30.s2, float %total.28, float %total.30.s1
  %where.50 = select i1 %less_equal.6, float %total.28, float %total.26
  %equal.14 = fcmp oeq float %total.26, %total.28
  %sub.15 = fsub float %where.50, %total.30
  %exp.14 = call float @tigon_exp_f32_v1(float %sub.15)
  %where.51 = select i1 %equal.14, float 1.0, float %exp.14
  %equal.15 = fcmp oeq float %where.50, 0xFFF0000000000000
  %where.52 = select i1 %equal.15, float 0.0, float %where.51
  %where.53 = select i1 %less_equal.6, float %total.27, float %total.29
  %where.54 = select i1 %less_equal.6, float %total.29, float %total.27
  %add.21 = fadd float 1.0, %where.54
  %total.31 = call float @llvm.fma.f32(float %add.21, float %where.52, float %where.53)

  ; column by lanes: 4 x 8
  %log1p = call float @tigon_log1p_f32_v1(float %total.31)
  %add.22 = fadd float %total.30, %log1p
  %add.all.one = insertelement <8 x float> poison, float %add.22, i32 0
  %add.all = shufflevector <8 x float> %add.all.one, <8 x float> poison, <8 x i32> zeroinitializer
  %mul.2 = mul i64 %row.1, %y.stride0
  %y.row = getelementptr float, ptr %y.base, i64 %mul.2
  %column.4.any = icmp slt i64 0, %column.blocks.1
  br i1 %column.4.any, label %column.4.loop, label %column.4.done
column.4.loop:
  %column.4 = phi i64 [ 0, %column.3.done ], [ %column.4.next, %column.4.latch ]
  %x.at.10 = getelementptr float, ptr %x.row, i64 %column.4
  %x.10 = load <8 x float>, ptr %x.at.10, align 4
  %sub.16 = fsub <8 x float> %x.10, %add.all
  %exp.15 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.16)
  %y.at = getelementptr float, ptr %y.row, i64 %column.4
  store <8 x float> %exp.15, ptr %y.at, align 4
  %add.23 = add i64 %column.4, 8
  %x.at.11 = getelementptr float, ptr %x.row, i64 %add.23
  %x.11 = load <8 x float>, ptr %x.at.11, align 4
  %sub.17 = fsub <8 x float> %x.11, %add.all
  %exp.16 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.17)
  %y.at.1 = getelementptr float, ptr %y.row, i64 %add.23
  store <8 x float> %exp.16, ptr %y.at.1, align 4
  %add.24 = add i64 %column.4, 16
  %x.at.12 = getelementptr float, ptr %x.row, i64 %add.24
  %x.12 = load <8 x float>, ptr %x.at.12, align 4
  %sub.18 = fsub <8 x float> %x.12, %add.all
  %exp.17 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.18)
  %y.at.2 = getelementptr float, ptr %y.row, i64 %add.24
  store <8 x float> %exp.17, ptr %y.at.2, align 4
  %add.25 = add i64 %column.4, 24
  %x.at.13 = getelementptr float, ptr %x.row, i64 %add.25
  %x.13 = load <8 x float>, ptr %x.at.13, align 4
  %sub.19 = fsub <8 x float> %x.13, %add.all
  %exp.18 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.19)
  %y.at.3 = getelementptr float, ptr %y.row, i64 %add.25
  store <8 x float> %exp.18, ptr %y.at.3, align 4
  br label %column.4.latch
column.4.latch:
  %column.4.next = add nsw i64 %column.4, 32
  %column.4.more = icmp slt i64 %column.4.next, %column.blocks.1
  br i1 %column.4.more, label %column.4.loop, label %column.4.done
column.4.done:
  %column.5.any = icmp slt i64 %column.blocks.1, %column.vectors
  br i1 %column.5.any, label %column.5.loop, label %column.5.done
column.5.loop:
  %column.5 = phi i64 [ %column.blocks.1, %column.4.done ], [ %column.5.next, %column.5.latch ]
  %x.at.14 = getelementptr float, ptr %x.row, i64 %column.5
  %x.14 = load <8 x float>, ptr %x.at.14, align 4
  %sub.20 = fsub <8 x float> %x.14, %add.all
  %exp.19 = call <8 x float> @tigon_exp_f32_v8(<8 x float> %sub.20)
  %y.at.4 = getelementptr float, ptr %y.row, i64 %column.5
  store <8 x float> %exp.19, ptr %y.at.4, align 4
  br label %column.5.latch
column.5.latch:
  %column.5.next = add nsw i64 %column.5, 8
  %column.5.more = icmp slt i64 %column.5.next, %column.vectors
  br i1 %column.5.more, label %column.5.loop, label %column.5.done
column.5.done:
  %column.6.any = icmp slt i64 %column.vectors, %column
  br i1 %column.6.any, label %column.6.loop, label %column.6.done
column.6.loop:
  %column.6 = phi i64 [ %column.vectors, %column.5.done ], [ %column.6.next, %column.6.latch ]
  %x.at.15 = getelementptr float, ptr %x.row, i64 %column.6
  %x.15 = load float, ptr %x.at.15, align 4
  %sub.21 = fsub float %x.15, %add.22
  %exp.20 = call float @tigon_exp_f32_v1(float %sub.21)
  %y.at.5 = getelementptr float, ptr %y.row, i64 %column.6
  store float %exp.20, ptr %y.at.5, align 4
  br label %column.6.latch
column.6.latch:
  %column.6.next = add nsw i64 %column.6, 1
  %column.6.more = icmp slt i64 %column.6.next, %column
  br i1 %column.6.more, label %column.6.loop, label %column.6.done
column.6.done:
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

declare <2 x float> @llvm.fma.v2f32(<2 x float>, <2 x float>, <2 x float>)
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare <8 x float> @llvm.fabs.v8f32(<8 x float>)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)

; e^x: x = n ln2 + r, 2^n (1 + r (1 + r q(r))); 0 below the normal numbers
define internal <8 x float> @tigon_exp_f32_v8(<8 x float> %x) alwaysinline nounwind {
  %magic = shufflevector <1 x float> <float 0x4168000000000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 12582912
  %log2e = shufflevector <1 x float> <float 0x3FF7154760000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 1.442695
  %shifted = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %log2e, <8 x float> %magic)
  %n = fsub <8 x float> %shifted, %magic
  %minus_ln2_high = shufflevector <1 x float> <float 0xBFE62E4300000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; -0.6931472
  %r_high = call <8 x float> @llvm.fma.v8f32(<8 x float> %n, <8 x float> %minus_ln2_high, <8 x float> %x)
  %minus_ln2_low = shufflevector <1 x float> <float 0x3E205C6100000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 1.9046542e-09
  %r = call <8 x float> @llvm.fma.v8f32(<8 x float> %n, <8 x float> %minus_ln2_low, <8 x float> %r_high)
  %one = shufflevector <1 x float> <float 0x3FF0000000000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 1
  %q_c4 = shufflevector <1 x float> <float 0x3F56A1A560000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 0.0013813128
  %q_c3 = shufflevector <1 x float> <float 0x3F8123FC40000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 0.008369418
  %q = call <8 x float> @llvm.fma.v8f32(<8 x float> %q_c4, <8 x float> %r, <8 x float> %q_c3)
  %q_c2 = shufflevector <1 x float> <float 0x3FA5559160000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 0.041668456
  %q.1 = call <8 x float> @llvm.fma.v8f32(<8 x float> %q, <8 x float> %r, <8 x float> %q_c2)
  %q_c1 = shufflevector <1 x float> <float 0x3FC55548A0000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 0.16666515
  %q.2 = call <8 x float> @llvm.fma.v8f32(<8 x float> %q.1, <8 x float> %r, <8 x float> %q_c1)
  %q_c0 = shufflevector <1 x float> <float 0x3FDFFFFFC0000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 0.49999994
  %q.3 = call <8 x float> @llvm.fma.v8f32(<8 x float> %q.2, <8 x float> %r, <8 x float> %q_c0)
  %slope = call <8 x float> @llvm.fma.v8f32(<8 x float> %q.3, <8 x float> %r, <8 x float> %one)
  %p = call <8 x float> @llvm.fma.v8f32(<8 x float> %slope, <8 x float> %r, <8 x float> %one)
  %mantissa_bits = shufflevector <1 x i32> <i32 23>, <1 x i32> poison, <8 x i32> zeroinitializer  ; 0x17
  %shifted_bits = bitcast <8 x float> %shifted to <8 x i32>
  %exponent = shl <8 x i32> %shifted_bits, %mantissa_bits
  %p_bits = bitcast <8 x float> %p to <8 x i32>
  %scaled_bits = add <8 x i32> %p_bits, %exponent
  %scaled = bitcast <8 x i32> %scaled_bits to <8 x float>
  %lowest = shufflevector <1 x float> <float 0xC055D589E0000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; -87.33654
  %small = fcmp olt <8 x float> %x, %lowest
  %zero = shufflevector <1 x float> <float 0x0000000000000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 0
  %flushed = select <8 x i1> %small, <8 x float> %zero, <8 x float> %scaled
  %highest = shufflevector <1 x float> <float 0x40562E42E0000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; 88.72283
  %large = fcmp ugt <8 x float> %x, %highest
  %infinity = shufflevector <1 x float> <float 0x7FF0000000000000>, <1 x float> poison, <8 x i32> zeroinitializer  ; inf
  %overflow = fadd <8 x float> %x, %infinity
  %result = select <8 x i1> %large, <8 x float> %overflow, <8 x float> %flushed
  ret <8 x float> %result
}

; e^x: x = n ln2 + r, 2^n (1 + r (1 + r q(r))); 0 below the normal numbers
define internal float @tigon_exp_f32_v1(float %x) alwaysinline nounwind {
  %shifted = call float @llvm.fma.f32(float %x, float 0x3FF7154760000000, float 0x4168000000000000)
  %n = fsub float %shifted, 0x4168000000000000
  %r_high = call float @llvm.fma.f32(float %n, float 0xBFE62E4300000000, float %x)
  %r = call float @llvm.fma.f32(float %n, float 0x3E205C6100000000, float %r_high)
  %q = call float @llvm.fma.f32(float 0x3F56A1A560000000, float %r, float 0x3F8123FC40000000)
  %q.1 = call float @llvm.fma.f32(float %q, float %r, float 0x3FA5559160000000)
  %q.2 = call float @llvm.fma.f32(float %q.1, float %r, float 0x3FC55548A0000000)
  %q.3 = call float @llvm.fma.f32(float %q.2, float %r, float 0x3FDFFFFFC0000000)
  %slope = call float @llvm.fma.f32(float %q.3, float %r, float 0x3FF0000000000000)
  %p = call float @llvm.fma.f32(float %slope, float %r, float 0x3FF0000000000000)
  %shifted_bits = bitcast float %shifted to i32
  %exponent = shl i32 %shifted_bits, 23
  %p_bits = bitcast float %p to i32
  %scaled_bits = add i32 %p_bits, %exponent
  %scaled = bitcast i32 %scaled_bits to float
  %small = fcmp olt float %x, 0xC055D589E0000000
  %flushed = select i1 %small, float 0x0000000000000000, float %scaled
  %large = fcmp ugt float %x, 0x40562E42E0000000
  %overflow = fadd float %x, 0x7FF0000000000000
  %result = select i1 %large, float %overflow, float %flushed
  ret float %result
}

; e^x: x = n ln2 + r, 2^n (1 + r (1 + r q(r))); 0 below the normal numbers
define internal <4 x float> @tigon_exp_f32_v4(<4 x float> %x) alwaysinline nounwind {
  %magic = shufflevector <1 x float> <float 0x4168000000000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 12582912
  %log2e = shufflevector <1 x float> <float 0x3FF7154760000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 1.442695
  %shifted = call <4 x float> @llvm.fma.v4f32(<4 x float> %x, <4 x float> %log2e, <4 x float> %magic)
  %n = fsub <4 x float> %shifted, %magic
  %minus_ln2_high = shufflevector <1 x float> <float 0xBFE62E4300000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; -0.6931472
  %r_high = call <4 x float> @llvm.fma.v4f32(<4 x float> %n, <4 x float> %minus_ln2_high, <4 x float> %x)
  %minus_ln2_low = shufflevector <1 x float> <float 0x3E205C6100000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 1.9046542e-09
  %r = call <4 x float> @llvm.fma.v4f32(<4 x float> %n, <4 x float> %minus_ln2_low, <4 x float> %r_high)
  %one = shufflevector <1 x float> <float 0x3FF0000000000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 1
  %q_c4 = shufflevector <1 x float> <float 0x3F56A1A560000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 0.0013813128
  %q_c3 = shufflevector <1 x float> <float 0x3F8123FC40000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 0.008369418
  %q = call <4 x float> @llvm.fma.v4f32(<4 x float> %q_c4, <4 x float> %r, <4 x float> %q_c3)
  %q_c2 = shufflevector <1 x float> <float 0x3FA5559160000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 0.041668456
  %q.1 = call <4 x float> @llvm.fma.v4f32(<4 x float> %q, <4 x float> %r, <4 x float> %q_c2)
  %q_c1 = shufflevector <1 x float> <float 0x3FC55548A0000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 0.16666515
  %q.2 = call <4 x float> @llvm.fma.v4f32(<4 x float> %q.1, <4 x float> %r, <4 x float> %q_c1)
  %q_c0 = shufflevector <1 x float> <float 0x3FDFFFFFC0000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 0.49999994
  %q.3 = call <4 x float> @llvm.fma.v4f32(<4 x float> %q.2, <4 x float> %r, <4 x float> %q_c0)
  %slope = call <4 x float> @llvm.fma.v4f32(<4 x float> %q.3, <4 x float> %r, <4 x float> %one)
  %p = call <4 x float> @llvm.fma.v4f32(<4 x float> %slope, <4 x float> %r, <4 x float> %one)
  %mantissa_bits = shufflevector <1 x i32> <i32 23>, <1 x i32> poison, <4 x i32> zeroinitializer  ; 0x17
  %shifted_bits = bitcast <4 x float> %shifted to <4 x i32>
  %exponent = shl <4 x i32> %shifted_bits, %mantissa_bits
  %p_bits = bitcast <4 x float> %p to <4 x i32>
  %scaled_bits = add <4 x i32> %p_bits, %exponent
  %scaled = bitcast <4 x i32> %scaled_bits to <4 x float>
  %lowest = shufflevector <1 x float> <float 0xC055D589E0000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; -87.33654
  %small = fcmp olt <4 x float> %x, %lowest
  %zero = shufflevector <1 x float> <float 0x0000000000000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 0
  %flushed = select <4 x i1> %small, <4 x float> %zero, <4 x float> %scaled
  %highest = shufflevector <1 x float> <float 0x40562E42E0000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; 88.72283
  %large = fcmp ugt <4 x float> %x, %highest
  %infinity = shufflevector <1 x float> <float 0x7FF0000000000000>, <1 x float> poison, <4 x i32> zeroinitializer  ; inf
  %overflow = fadd <4 x float> %x, %infinity
  %result = select <4 x i1> %large, <4 x float> %overflow, <4 x float> %flushed
  ret <4 x float> %result
}

; e^x: x = n ln2 + r, 2^n (1 + r (1 + r q(r))); 0 below the normal numbers
define internal <2 x float> @tigon_exp_f32_v2(<2 x float> %x) alwaysinline nounwind {
  %magic = shufflevector <1 x float> <float 0x4168000000000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 12582912
  %log2e = shufflevector <1 x float> <float 0x3FF7154760000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 1.442695
  %shifted = call <2 x float> @llvm.fma.v2f32(<2 x float> %x, <2 x float> %log2e, <2 x float> %magic)
  %n = fsub <2 x float> %shifted, %magic
  %minus_ln2_high = shufflevector <1 x float> <float 0xBFE62E4300000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; -0.6931472
  %r_high = call <2 x float> @llvm.fma.v2f32(<2 x float> %n, <2 x float> %minus_ln2_high, <2 x float> %x)
  %minus_ln2_low = shufflevector <1 x float> <float 0x3E205C6100000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 1.9046542e-09
  %r = call <2 x float> @llvm.fma.v2f32(<2 x float> %n, <2 x float> %minus_ln2_low, <2 x float> %r_high)
  %one = shufflevector <1 x float> <float 0x3FF0000000000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 1
  %q_c4 = shufflevector <1 x float> <float 0x3F56A1A560000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 0.0013813128
  %q_c3 = shufflevector <1 x float> <float 0x3F8123FC40000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 0.008369418
  %q = call <2 x float> @llvm.fma.v2f32(<2 x float> %q_c4, <2 x float> %r, <2 x float> %q_c3)
  %q_c2 = shufflevector <1 x float> <float 0x3FA5559160000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 0.041668456
  %q.1 = call <2 x float> @llvm.fma.v2f32(<2 x float> %q, <2 x float> %r, <2 x float> %q_c2)
  %q_c1 = shufflevector <1 x float> <float 0x3FC55548A0000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 0.16666515
  %q.2 = call <2 x float> @llvm.fma.v2f32(<2 x float> %q.1, <2 x float> %r, <2 x float> %q_c1)
  %q_c0 = shufflevector <1 x float> <float 0x3FDFFFFFC0000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 0.49999994
  %q.3 = call <2 x float> @llvm.fma.v2f32(<2 x float> %q.2, <2 x float> %r, <2 x float> %q_c0)
  %slope = call <2 x float> @llvm.fma.v2f32(<2 x float> %q.3, <2 x float> %r, <2 x float> %one)
  %p = call <2 x float> @llvm.fma.v2f32(<2 x float> %slope, <2 x float> %r, <2 x float> %one)
  %mantissa_bits = shufflevector <1 x i32> <i32 23>, <1 x i32> poison, <2 x i32> zeroinitializer  ; 0x17
  %shifted_bits = bitcast <2 x float> %shifted to <2 x i32>
  %exponent = shl <2 x i32> %shifted_bits, %mantissa_bits
  %p_bits = bitcast <2 x float> %p to <2 x i32>
  %scaled_bits = add <2 x i32> %p_bits, %exponent
  %scaled = bitcast <2 x i32> %scaled_bits to <2 x float>
  %lowest = shufflevector <1 x float> <float 0xC055D589E0000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; -87.33654
  %small = fcmp olt <2 x float> %x, %lowest
  %zero = shufflevector <1 x float> <float 0x0000000000000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 0
  %flushed = select <2 x i1> %small, <2 x float> %zero, <2 x float> %scaled
  %highest = shufflevector <1 x float> <float 0x40562E42E0000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; 88.72283
  %large = fcmp ugt <2 x float> %x, %highest
  %infinity = shufflevector <1 x float> <float 0x7FF0000000000000>, <1 x float> poison, <2 x i32> zeroinitializer  ; inf
  %overflow = fadd <2 x float> %x, %infinity
  %result = select <2 x i1> %large, <2 x float> %overflow, <2 x float> %flushed
  ret <2 x float> %result
}

; log(1 + x): 1 + x = 2^k (1 + f), with f computed from x
define internal float @tigon_log1p_f32_v1(float %x) alwaysinline nounwind {
  %u = fadd float %x, 0x3FF0000000000000
  %u_bits = bitcast float %u to i32
  %moved = add i32 %u_bits, 4913933
  %biased = lshr i32 %moved, 23
  %k_bits = or i32 %biased, 1258291200
  %k_biased = bitcast i32 %k_bits to float
  %k = fsub float %k_biased, 0x4160000FE0000000
  %field = and i32 %moved, 2139095040
  %scale_bits = sub i32 -2147483648, %field
  %scale = bitcast i32 %scale_bits to float
  %offset = call float @llvm.fma.f32(float %scale, float 0x3FD0000000000000, float 0xBFF0000000000000)
  %quarter_x = fmul float %x, 0x3FD0000000000000
  %f = call float @llvm.fma.f32(float %quarter_x, float %scale, float %offset)
  %f_squared = fmul float %f, %f
  %q = call float @llvm.fma.f32(float 0xBFB382F700000000, float %f, float 0x3FC08481A0000000)
  %q.1 = call float @llvm.fma.f32(float %q, float %f, float 0xBFC0F37620000000)
  %q.2 = call float @llvm.fma.f32(float %q.1, float %f, float 0x3FC2271A60000000)
  %q.3 = call float @llvm.fma.f32(float %q.2, float %f, float 0xBFC5427700000000)
  %q.4 = call float @llvm.fma.f32(float %q.3, float %f, float 0x3FC99A3F20000000)
  %q.5 = call float @llvm.fma.f32(float %q.4, float %f, float 0xBFD0004260000000)
  %q.6 = call float @llvm.fma.f32(float %q.5, float %f, float 0x3FD5555500000000)
  %q.7 = call float @llvm.fma.f32(float %q.6, float %f, float 0xBFDFFFFF80000000)
  %rest = fmul float %f_squared, %q.7
  %low = call float @llvm.fma.f32(float %k, float 0xBE205C6100000000, float %rest)
  %high = fadd float %low, %f
  %sum_of_parts = call float @llvm.fma.f32(float %k, float 0x3FE62E4300000000, float %high)
  %a = call float @llvm.fabs.f32(float %x)
  %tiny = fcmp olt float %a, 0x3E60000000000000
  %kept = select i1 %tiny, float %x, float %sum_of_parts
  %at_pole = fcmp oeq float %x, 0xBFF0000000000000
  %outside = select i1 %at_pole, float 0xFFF0000000000000, float 0x7FF8000000000000
  %inside = fcmp ogt float %x, 0xBFF0000000000000
  %bounded = select i1 %inside, float %kept, float %outside
  %at_infinity = fcmp oeq float %x, 0x7FF0000000000000
  %result = select i1 %at_infinity, float 0x7FF0000000000000, float %bounded
  ret float %result
}

attributes #0 = { nounwind "instcombine-no-verify-fixpoint" }
