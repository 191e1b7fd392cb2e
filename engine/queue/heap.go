//ringmq:hot

package queue

// seqHeap is a binary min-heap of sequence numbers.
type seqHeap []uint64

func (h *seqHeap) push(v uint64) {
	*h = append(*h, v)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if s[parent] <= s[i] {
			break
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
}

func (h *seqHeap) pop() {
	s := *h
	n := len(s) - 1
	s[0] = s[n]
	s = s[:n]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && s[child+1] < s[child] {
			child++
		}
		if s[i] <= s[child] {
			return
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}

// deadline is one entry of the expiry index.
type deadline struct {
	at  int64 // monotonic nanoseconds
	seq uint64
}

// before orders by time and, within one turn, as enqueued: dead letters of one
// queue keep their order.
func (d deadline) before(o deadline) bool {
	return d.at < o.at || d.at == o.at && d.seq < o.seq
}

// deadlineHeap is a binary min-heap by time. Pushes with rising times, the
// common case of one time to live for a whole queue, cost one comparison.
type deadlineHeap []deadline

func (h *deadlineHeap) push(d deadline) {
	*h = append(*h, d)
	h.up(len(*h) - 1)
}

func (h deadlineHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

func (h *deadlineHeap) pop() {
	s := *h
	n := len(s) - 1
	s[0] = s[n]
	*h = s[:n]
	h.down(0)
}

func (h deadlineHeap) down(i int) {
	n := len(h)
	for {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// rebuild restores the heap after entries were filtered in place.
func (h deadlineHeap) rebuild() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}
