//ringmq:hot

package ring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// iovec is what one gathered send takes.
type iovec = unix.Iovec

// gatherBytesMax bounds one send: large enough that its fixed cost does not show, small enough that a
// slow reader's progress is seen before it has read everything.
const gatherBytesMax = 512 << 10

// segment is a run of output bytes: in a chunk of ours (chunk != nil), or shared (token goes to
// App.Release).
type segment struct {
	p     unsafe.Pointer
	n     int
	chunk *outChunk
	token unsafe.Pointer
}

// segmentsPerBlock makes a block a little less than 1 KiB.
const segmentsPerBlock = 31

// segmentBlock is a link of a queue. Blocks live on the Go heap, in the loop's free list, because
// tokens may be Go pointers.
type segmentBlock struct {
	segs [segmentsPerBlock]segment
	next *segmentBlock
}

// sendQueue is the output of one connection in order. Empty, it holds no memory.
//
// The kernel may be reading the bytes of the first segments while more are pushed; consume counts
// bytes, not segments, so the last segment in flight may grow at its end meanwhile.
type sendQueue struct {
	head, tail       *segmentBlock
	headPos, tailPos int32 // first used in head, first free in tail
}

// push appends n bytes at p. Bytes that follow the last ones in the same chunk only lengthen their
// segment.
func (q *sendQueue) push(pool *chunkPool, p unsafe.Pointer, n int, chunk *outChunk, token unsafe.Pointer) {
	t := q.tail
	if t == nil {
		t = pool.block()
		q.head, q.tail, q.headPos, q.tailPos = t, t, 0, 0
	} else if chunk != nil {
		if last := &t.segs[q.tailPos-1]; last.chunk == chunk && unsafe.Add(last.p, last.n) == p {
			last.n += n
			return
		}
	}
	if q.tailPos == segmentsPerBlock {
		b := pool.block()
		t.next = b
		t, q.tail, q.tailPos = b, b, 0
	}
	if chunk != nil {
		chunk.refs++
	}
	t.segs[q.tailPos] = segment{p: p, n: n, chunk: chunk, token: token}
	q.tailPos++
}

// gather fills dst from the front.
func (q *sendQueue) gather(dst []iovec) (count, bytes int) {
	b, pos := q.head, q.headPos
	for count < len(dst) && bytes < gatherBytesMax && b != nil {
		end := int32(segmentsPerBlock)
		if b == q.tail {
			end = q.tailPos
		}
		if pos == end {
			b, pos = b.next, 0
			continue
		}
		s := &b.segs[pos]
		n := min(s.n, gatherBytesMax-bytes)
		dst[count].Base = (*byte)(s.p)
		dst[count].SetLen(n)
		bytes += n
		count++
		pos++
	}
	return count, bytes
}

// consume releases the first n bytes.
func (q *sendQueue) consume(l *Loop, n int) {
	for n > 0 {
		if q.headPos == segmentsPerBlock {
			b := q.head
			q.head, q.headPos = b.next, 0
			l.pool.unblock(b)
		}
		s := &q.head.segs[q.headPos]
		if n < s.n {
			s.p = unsafe.Add(s.p, n)
			s.n -= n
			return
		}
		n -= s.n
		chunk, token := s.chunk, s.token
		*s = segment{}
		q.headPos++
		if chunk != nil {
			l.pool.unref(chunk)
		} else {
			l.release(token)
		}
	}
	if q.head != nil && q.head == q.tail && q.headPos == q.tailPos {
		l.pool.unblock(q.head)
		*q = sendQueue{}
	}
}
