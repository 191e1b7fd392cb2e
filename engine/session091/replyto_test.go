package session091

import (
	"slices"
	"strings"
	"testing"

	"ringmq/frame/amqp091"
)

// requestFrames is a request to a queue.
func (c *client) request(ch uint16, q string, id uint64) {
	props := amqp091.Properties{Flags: amqp091.FlagReplyTo, ReplyTo: []byte(replyQueue)}
	c.peer.Write(publishFrames(nil, ch, "", q, false, props.Append(nil), numbered(id, 8), int(c.w.frameMax)))
}

// DRT-03 across loops: requesters come and go while replies are under way. Each
// reply reaches the channel whose request it answers or nobody, a mandatory one
// that reached nobody comes back, all are confirmed, and nothing is left over.
func TestRepliesAcrossLoops(t *testing.T) {
	forSeeds(t, 200, func(w *world) {
		server, asker := w.dial(1), w.dial(0)
		server.channel(1)
		server.declare(1, "q", nil)
		server.confirmSelect(1)
		server.consume(1, "q", "s", true)
		book := newConfirmBook()
		server.onEvent = func(e event) {
			if text := book.event(e.m); text != "" {
				w.fatalf("%s", text)
			}
		}
		const channels = 4
		tags := [channels + 1]int{}
		for ch := uint16(1); ch <= channels; ch++ {
			asker.channel(ch)
			asker.consume(ch, replyQueue, "r", true)
		}
		asked := map[uint64]uint16{} // number of a request -> channel
		returned, replied, next := 0, 0, uint64(0)
		serve := func() {
			for _, e := range server.deliveries(1) {
				var p amqp091.Properties
				if err := p.Decode(e.props); err != nil || !strings.HasPrefix(string(p.ReplyTo), replyPrefix) {
					w.fatalf("request with reply-to %q, %v", p.ReplyTo, err)
				}
				book.published()
				replied++
				server.peer.Write(publishFrames(nil, 1, "", string(p.ReplyTo), true, nil, e.body, int(w.frameMax)))
			}
		}
		for range 40 {
			ch := uint16(1 + w.Rand().IntN(channels))
			for range w.Rand().IntN(4) {
				next++
				asked[next] = ch
				asker.request(ch, "q", next)
			}
			if w.Rand().IntN(4) == 0 { // the token dies, and another takes its place
				asker.send(ch, &amqp091.BasicCancel{ConsumerTag: []byte("r")})
				asker.send(ch, &amqp091.BasicConsume{Queue: []byte(replyQueue), ConsumerTag: []byte("r"), NoAck: true})
				tags[ch]++
			}
			w.steps(w.Rand().IntN(6))
			serve()
		}
		for range 3 { // requests, replies, and what comes of them
			w.rest()
			serve()
		}
		w.rest()
		got := map[uint64]bool{}
		for ch := uint16(1); ch <= channels; ch++ {
			for _, e := range asker.deliveries(ch) {
				id := numberOf(e.body)
				if asked[id] != ch || got[id] {
					w.fatalf("reply to %d on channel %d, asked on %d, twice %v", id, ch, asked[id], got[id])
				}
				got[id] = true
			}
		}
		for _, e := range server.got {
			if _, ok := e.m.(*amqp091.BasicReturn); ok {
				returned++
			}
		}
		if len(book.open) != 0 || len(book.nacked) != 0 {
			w.fatalf("%d replies are not confirmed, %d nacked", len(book.open), len(book.nacked))
		}
		if replied != int(next) || len(got)+returned != replied {
			w.fatalf("%d requests, %d replies: %d arrived and %d came back", next, replied, len(got), returned)
		}
		if slices.Max(tags[:]) == 0 && returned > 0 {
			w.fatalf("%d replies came back, and no consumer left", returned)
		}
	})
}

// DRT-03: a requester that does not read gets replies up to a bound; a mandatory
// one beyond it comes back, and the requester's place is free when it is gone.
func TestReplyBacklog(t *testing.T) {
	w := newWorld(t, 1, 2)
	server, asker := w.dial(1), w.dial(0)
	server.channel(1)
	server.declare(1, "q", nil)
	asker.channel(1)
	asker.consume(1, replyQueue, "r", true)
	k := w.srv.loops[0].replies.places[0]
	asker.deaf = true
	asker.peer.SetWindow(0)
	const size = 4 << 20
	for range 2 * replyBacklogMax / size {
		server.peer.Write(publishFrames(nil, 1, "", string(k.name), true, nil, make([]byte, size), int(w.frameMax)))
		w.rest()
	}
	returned := 0
	for _, e := range server.got {
		if _, ok := e.m.(*amqp091.BasicReturn); ok {
			returned++
		}
	}
	if most, want := k.ch.c.rc.Pending(), replyBacklogMax/size; most > replyBacklogMax+size+1<<20 || returned < want-2 || returned > want {
		t.Errorf("%d bytes wait, %d replies came back, want about %d", most, returned, want)
	}
	w.finish()
	if tab := &w.srv.loops[0].replies; tab.places[0] != nil || len(tab.free) != 1 {
		t.Errorf("the place is not free: %v", tab)
	}
}

// DRT-02: names are told apart to the last bit, and one that was never given out
// leads nowhere.
func TestReplyNames(t *testing.T) {
	var tab replyTable
	k := &replyConsumer{}
	tab.add(k, 3)
	if len(k.name) != len(replyPrefix)+replyTokenBytes {
		t.Fatalf("name %q", k.name)
	}
	a, ok := parseReply(k.name, 4)
	if !ok || a != k.address {
		t.Errorf("%+v read as %+v", k.address, a)
	}
	if _, ok := parseReply(k.name, 3); ok {
		t.Error("a loop that is not there")
	}
	for i := len(replyPrefix); i < len(k.name); i++ {
		for _, c := range []byte("A_-9z=.!") {
			name := slices.Clone(k.name)
			name[i] = c
			if a, ok := parseReply(name, 1<<16); ok && a == k.address && c != k.name[i] {
				t.Errorf("%q and %q are the same", name, k.name)
			}
		}
	}
	for _, name := range []string{replyPrefix + "x", string(k.name) + "A", string(k.name[:len(k.name)-1])} {
		if _, ok := parseReply([]byte(name), 4); ok {
			t.Errorf("%q is read", name)
		}
	}
	tab.remove(k)
	again := &replyConsumer{}
	tab.add(again, 3)
	if again.address.place != k.address.place || again.address.secret == k.address.secret {
		t.Errorf("the next consumer has %+v after %+v", again.address, k.address)
	}
}
