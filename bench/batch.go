package bench

import "math/rand/v2"

// batch is a run of encoded publishes, written to the socket over and over.
type batch struct {
	buf    []byte
	ends   []int // message i is buf[ends[i-1]:ends[i]]
	bodyAt []int // offset of message i's first body octet
}

// newBatch encodes at least wanted octets of publishes with the keys in turn,
// whole rounds of them so that repeating the batch keeps the shares even.
func newBatch(template publish, keys []string, sizes []int, wanted, frameMax int, rng *rand.Rand) *batch {
	b := &batch{}
	keys = append([]string(nil), keys...)
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for len(b.buf) < wanted || len(b.ends)%(len(keys)*len(sizes)) != 0 {
		i := len(b.ends)
		// Sizes advance once per round of keys, so that every key sees every size.
		p := template
		p.key = keys[i%len(keys)]
		p.body = make([]byte, sizes[i/len(keys)%len(sizes)])
		for j := range p.body {
			p.body[j] = byte(rng.Uint32())
		}
		bodyAt := len(b.buf) + publishHeadSize(p)
		b.buf = appendPublish(b.buf, 1, p, frameMax)
		b.ends = append(b.ends, len(b.buf))
		b.bodyAt = append(b.bodyAt, bodyAt)
	}
	return b
}

// publishHeadSize is how many octets precede the body's first octet.
func publishHeadSize(p publish) int {
	n := frameOverhead + 4 + 2 + 1 + len(p.exchange) + 1 + len(p.key) + 1
	n += frameOverhead + 14
	if p.persistent {
		n++
	}
	return n + frameHeadSize
}

func (b *batch) count() int { return len(b.ends) }

// slice returns the octets of up to n messages from message at on, not
// wrapping, and how many they are.
func (b *batch) slice(at, n int) ([]byte, int) {
	n = min(n, len(b.ends)-at)
	from := 0
	if at > 0 {
		from = b.ends[at-1]
	}
	return b.buf[from:b.ends[at+n-1]], n
}

// stamp writes value into the first 8 body octets of message i.
func (b *batch) stamp(i int, value uint64) { be.PutUint64(b.buf[b.bodyAt[i]:], value) }
