package session091

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/frame/amqp091"
)

// Direct reply-to (spec C.10): a requester consumes from a queue that does not
// exist, its requests carry a name that leads back to it, and a reply that is
// published to this name is written to its connection, past all queues.
//
// The name holds the loop of the requester, its place in that loop's table, and
// 128 random bits of this one consumer: nobody guesses it, and whoever comes to
// the same place later is not hit.
const (
	replyQueue  = "amq.rabbitmq.reply-to"
	replyPrefix = replyQueue + "."

	replyAddressBytes = 2 + 4 + replySecretBytes
	replySecretBytes  = 16
	replyTokenBytes   = 30 // replyAddressBytes in base64
)

// replyBacklogMax is how many bytes may wait for a requester before replies to it
// are dropped: nothing else bounds them, as there is no queue and no window.
const replyBacklogMax = 32 << 20

var replyEncoding = base64.RawURLEncoding.Strict()

// replyAddress is where a reply goes.
type replyAddress struct {
	loop   int
	place  uint32
	secret [replySecretBytes]byte
}

// isReplyName reports a name that leads to requesters or may look so (DRT-04).
func isReplyName(name string) bool { return strings.HasPrefix(name, replyQueue) }

// isReplyKey reports a key that leads to a requester, alive or not.
func isReplyKey(key []byte) bool {
	return len(key) > len(replyPrefix) && string(key[:len(replyPrefix)]) == replyPrefix
}

// parseReply reads a key for which isReplyKey holds; ok is false for one that was
// never given out.
func parseReply(key []byte, loops int) (a replyAddress, ok bool) {
	var b [replyAddressBytes]byte
	token := key[len(replyPrefix):]
	if len(token) != replyTokenBytes {
		return a, false
	}
	if _, err := replyEncoding.Decode(b[:], token); err != nil {
		return a, false
	}
	a.loop, a.place = int(binary.BigEndian.Uint16(b[:])), binary.BigEndian.Uint32(b[2:])
	copy(a.secret[:], b[6:])
	return a, a.loop < loops
}

// replyConsumer is a channel's consumer of replies.
type replyConsumer struct {
	ch      *channel
	tag     string
	prefix  []byte // basic.deliver up to and including the consumer tag
	address replyAddress
	name    []byte // what reply-to becomes
}

// replyTable holds the reply consumers of one loop, which owns it.
type replyTable struct {
	places []*replyConsumer // nil where one left
	free   []uint32
}

// add gives a consumer its place and its name.
func (t *replyTable) add(k *replyConsumer, loop int) {
	if last := len(t.free) - 1; last >= 0 {
		k.address.place, t.free = t.free[last], t.free[:last]
	} else {
		k.address.place = uint32(len(t.places))
		t.places = append(t.places, nil)
	}
	t.places[k.address.place] = k
	k.address.loop = loop
	rand.Read(k.address.secret[:]) // never fails
	var b [replyAddressBytes]byte
	binary.BigEndian.PutUint16(b[:], uint16(loop))
	binary.BigEndian.PutUint32(b[2:], k.address.place)
	copy(b[6:], k.address.secret[:])
	k.name = replyEncoding.AppendEncode([]byte(replyPrefix), b[:])
}

func (t *replyTable) remove(k *replyConsumer) {
	t.places[k.address.place] = nil
	t.free = append(t.free, k.address.place)
}

// find is the consumer that a name was made for, nil when it is gone or of another
// vhost (GEN-02).
func (t *replyTable) find(a *replyAddress, v *engine.VHost) *replyConsumer {
	if int(a.place) >= len(t.places) {
		return nil
	}
	k := t.places[a.place]
	if k == nil || k.ch.c.vhost != v || subtle.ConstantTimeCompare(a.secret[:], k.address.secret[:]) != 1 {
		return nil
	}
	return k
}

// deliver writes a reply and reports whether the requester is there to take it. It
// keeps no reference.
func (t *replyTable) deliver(a *replyAddress, v *engine.VHost, m *core.Message) bool {
	k := t.find(a, v)
	if k == nil {
		return false
	}
	ch := k.ch
	if ch.c.rc.Closing() || ch.c.rc.Pending() > replyBacklogMax {
		return false
	}
	tag := ch.nextTag
	ch.nextTag++
	ch.c.writeDeliver(k.prefix, tag, false, m, m.Head(), ch.id)
	return true
}

// consumeReplies is basic.consume of the reply queue (DRT-01).
func (ch *channel) consumeReplies(m *amqp091.BasicConsume) {
	id := amqp091.MethodBasicConsume
	tag, ok := ch.newTag(m.ConsumerTag)
	switch {
	case !ok:
		return
	case ch.replies != nil:
		ch.fail(amqp091.PreconditionFailed, id, "reply consumer already set")
		return
	case !m.NoAck:
		ch.fail(amqp091.PreconditionFailed, id, "reply consumer cannot acknowledge")
		return
	}
	k := &replyConsumer{ch: ch, tag: tag, prefix: deliverPrefix(ch.id, tag)}
	ch.c.lp.replies.add(k, ch.c.shard.Index)
	ch.replies = k
	ch.pub.props = nil // reply-to of the last header means something else now
	ch.sendOK(m.NoWait, &amqp091.BasicConsumeOk{ConsumerTag: []byte(tag)})
}

// endReplies gives the channel's reply consumer up, if it has one.
func (ch *channel) endReplies() {
	if ch.replies != nil {
		ch.c.lp.replies.remove(ch.replies)
		ch.replies = nil
		ch.pub.props = nil
	}
}

// declareReplies is queue.declare, passive or not, of a name that leads to
// requesters (DRT-04).
func (ch *channel) declareReplies(name string, noWait bool) {
	c := ch.c
	exists := name == replyQueue
	answer := func() {
		switch {
		case ch.ended || c.state != stateOpen:
		case !exists:
			ch.refuse(c.vhost.NoQueue(name), amqp091.MethodQueueDeclare)
		default:
			ch.current = name
			ch.sendOK(noWait, &amqp091.QueueDeclareOk{Queue: []byte(name), ConsumerCount: 1})
		}
	}
	if exists || !isReplyKey([]byte(name)) {
		answer()
		return
	}
	to, ok := parseReply([]byte(name), len(c.srv.loops))
	if !ok {
		answer()
		return
	}
	v := c.vhost
	c.await(to.loop, func(at *engine.Shard) {
		exists = c.srv.loops[at.Index].replies.find(&to, v) != nil
	}, answer)
}

// requesters are the addresses among the keys of a message to the default
// exchange. A key that is no address any more leads nowhere, as the one of a
// requester that left; it is reported as an address of this loop that nobody has.
// They are appended to to.
func (ch *channel) requesters(to []replyAddress, m *core.Message, x *engine.Exchange, more [][]byte) []replyAddress {
	if x.Name != "" {
		return to
	}
	to = ch.appendRequester(to, m.Key())
	for _, key := range more {
		to = ch.appendRequester(to, key)
	}
	return to
}

func (ch *channel) appendRequester(to []replyAddress, key []byte) []replyAddress {
	if !isReplyKey(key) {
		return to
	}
	a, ok := parseReply(key, len(ch.c.srv.loops))
	if !ok {
		a = replyAddress{loop: ch.c.shard.Index, place: 1<<32 - 1}
	}
	return append(to, a)
}

// sendReplies hands a message to requesters; nobody asks what became of it.
func (ch *channel) sendReplies(m *core.Message, to []replyAddress) {
	c := ch.c
	for i := range to {
		if to[i].loop == c.shard.Index {
			c.lp.replies.deliver(&to[i], c.vhost, m)
			continue
		}
		c.tellReply(to[i], m)
	}
}

// tellReply takes a reply to another loop.
func (c *conn) tellReply(to replyAddress, m *core.Message) {
	srv, v := c.srv, c.vhost
	m.AddRef(1)
	c.shard.Tell(to.loop, func(at *engine.Shard) {
		srv.loops[at.Index].replies.deliver(&to, v, m)
		m.Release(at.Arena())
	})
	if c.shard.Congested() {
		c.stall()
	}
}

// reply hands a message that no queue takes to requesters. It takes over the
// reference. When counted, the caller waits for one answer about seq: it comes at
// once, or when a mandatory message is known to have reached somebody or was
// returned (DRT-03, CNF-05).
func (ch *channel) reply(m *core.Message, to []replyAddress, mandatory, counted bool, seq uint64) {
	c := ch.c
	if !mandatory {
		ch.sendReplies(m, to)
		m.Release(c.shard.Arena())
		if counted {
			ch.Settled(seq, true)
		}
		return
	}
	srv, v, reached, left := c.srv, c.vhost, false, len(to)
	for _, a := range to {
		ok := false
		c.shard.On(a.loop, func(at *engine.Shard) {
			ok = srv.loops[at.Index].replies.deliver(&a, v, m)
		}, func() {
			reached = reached || ok
			if left--; left > 0 {
				return
			}
			if !reached && !ch.ended && c.state == stateOpen {
				ch.giveBack(m)
			}
			m.Release(c.shard.Arena())
			if counted {
				ch.Settled(seq, true)
			}
		})
	}
	if c.shard.Congested() {
		c.stall()
	}
}
