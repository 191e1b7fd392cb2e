package session091

import (
	"testing"

	"ringmq/frame/amqp091"
)

// SSD-01: a header as long as a frame allows works, and the channel keeps none of
// its memory; the ordinary ones after it are remembered as ever.
func TestSelectedMemory(t *testing.T) {
	h := newHotConn(t, declareMethod("q", nil), declareMethod("r", nil))
	send := func(keys int) {
		var cc, bcc []byte
		for range keys {
			cc = amqp091.ItemString(cc, "nobody")
			bcc = amqp091.ItemString(bcc, "no one")
		}
		bcc = amqp091.ItemString(bcc, "r")
		props := amqp091.Properties{Flags: amqp091.FlagHeaders, Headers: amqp091.AppendArray(amqp091.AppendArray(nil, "CC", cc), "BCC", bcc)}
		h.give(h.c, publishFrames(nil, 1, "", "q", false, props.Append(nil), []byte("body"), 131072))
	}
	p := &h.c.channel(1).pub
	for n, keys := range []int{1, 5000, 1, 1, 5000} {
		send(keys)
		h.turn()
		for _, q := range []string{"q", "r"} {
			if ready := h.Broker.VHost("/").Queue([]byte(q)).Ready(); ready != n+1 {
				t.Fatalf("after %d messages queue %s has %d", n+1, q, ready)
			}
		}
		e := &p.extras
		if most := max(cap(e.items), cap(e.list), cap(e.head), cap(e.table)); most > 2*extrasKept {
			t.Errorf("after %d keys the channel keeps %d bytes", keys, most)
		}
		if remembered := p.props != nil; remembered != (keys == 1) {
			t.Errorf("after %d keys: remembered %v", keys, remembered)
		}
	}
}
