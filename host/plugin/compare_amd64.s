#include "textflag.h"

// SSE2, which every amd64 has. Memory is read in order, but its pages are
// scattered: the processor does not see across the end of one and waits anew at
// the beginning of the next, unless it is told in time what comes.

// func allZero(p *byte, blocks, ahead int) bool
TEXT ·allZero(SB), NOSPLIT, $0-25
	MOVQ p+0(FP), SI
	MOVQ blocks+8(FP), CX
	MOVQ ahead+16(FP), DX
	PXOR X0, X0
	PXOR X1, X1
	PXOR X8, X8

zero:
	PREFETCHT0 (SI)(DX*1)
	PREFETCHT0 64(SI)(DX*1)
	MOVOU 0(SI), X4
	MOVOU 16(SI), X5
	MOVOU 32(SI), X6
	MOVOU 48(SI), X7
	POR X4, X0
	POR X5, X1
	POR X6, X0
	POR X7, X1
	MOVOU 64(SI), X4
	MOVOU 80(SI), X5
	MOVOU 96(SI), X6
	MOVOU 112(SI), X7
	POR X4, X0
	POR X5, X1
	POR X6, X0
	POR X7, X1
	ADDQ $128, SI
	DECQ CX
	JNZ zero
	POR X1, X0
	PCMPEQB X8, X0
	PMOVMSKB X0, AX
	CMPL AX, $0xffff
	SETEQ ret+24(FP)
	RET

// func allEqual(p, q *byte, blocks, ahead int) bool
TEXT ·allEqual(SB), NOSPLIT, $0-33
	MOVQ p+0(FP), SI
	MOVQ q+8(FP), DI
	MOVQ blocks+16(FP), CX
	MOVQ ahead+24(FP), DX
	PXOR X0, X0
	PXOR X1, X1
	PXOR X8, X8

equal:
	PREFETCHT0 (SI)(DX*1)
	PREFETCHT0 64(SI)(DX*1)
	MOVOU 0(SI), X4
	MOVOU 16(SI), X5
	MOVOU 32(SI), X6
	MOVOU 48(SI), X7
	MOVOU 0(DI), X9
	MOVOU 16(DI), X10
	MOVOU 32(DI), X11
	MOVOU 48(DI), X12
	PXOR X9, X4
	PXOR X10, X5
	PXOR X11, X6
	PXOR X12, X7
	POR X4, X0
	POR X5, X1
	POR X6, X0
	POR X7, X1
	MOVOU 64(SI), X4
	MOVOU 80(SI), X5
	MOVOU 96(SI), X6
	MOVOU 112(SI), X7
	MOVOU 64(DI), X9
	MOVOU 80(DI), X10
	MOVOU 96(DI), X11
	MOVOU 112(DI), X12
	PXOR X9, X4
	PXOR X10, X5
	PXOR X11, X6
	PXOR X12, X7
	POR X4, X0
	POR X5, X1
	POR X6, X0
	POR X7, X1
	ADDQ $128, SI
	ADDQ $128, DI
	DECQ CX
	JNZ equal
	POR X1, X0
	PCMPEQB X8, X0
	PMOVMSKB X0, AX
	CMPL AX, $0xffff
	SETEQ ret+32(FP)
	RET
