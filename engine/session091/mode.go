package session091

import (
	"fmt"

	"ringmq/engine"
	"ringmq/engine/core"
	"ringmq/engine/queue"
	"ringmq/frame/amqp091"
)

func (ch *channel) unknownTag(tag uint64, id amqp091.MethodID) {
	ch.fail(amqp091.PreconditionFailed, id, fmt.Sprintf("unknown delivery tag %d", tag))
}

// confirmSelect handles confirm.select (CFM-01).
func (ch *channel) confirmSelect(args []byte) {
	var m amqp091.ConfirmSelect
	if !ch.decode(amqp091.MethodConfirmSelect, m.Decode(args)) {
		return
	}
	if ch.tx != nil {
		ch.fail(amqp091.PreconditionFailed, amqp091.MethodConfirmSelect, "cannot switch from tx to confirm mode")
		return
	}
	ch.confirm = true
	ch.sendOK(m.NoWait, &amqp091.ConfirmSelectOk{})
}

// txState is an open transaction of AMQP 0-9-1: publishes and settlements that
// wait for the commit (spec A.8).
type txState struct {
	publishes []txPublish
	settles   []txSettle
	settled   map[uint64]struct{}
	waiting   int  // answers outstanding of a commit
	refused   bool // some queue refused a message of the commit
	done      func()
}

type txPublish struct {
	m         *core.Message
	target    *engine.Exchange
	mandatory bool
	more      [][]byte // further keys of its own
}

type txSettle struct {
	kind settleKind
	tag  uint64
}

func (ch *channel) txSelect(args []byte) {
	var m amqp091.TxSelect
	if !ch.decode(amqp091.MethodTxSelect, m.Decode(args)) {
		return
	}
	if ch.confirm {
		ch.fail(amqp091.PreconditionFailed, amqp091.MethodTxSelect, "cannot switch from confirm to tx mode")
		return
	}
	if ch.tx == nil {
		ch.tx = &txState{settled: map[uint64]struct{}{}}
	}
	ch.send(&amqp091.TxSelectOk{})
}

// publish holds a message until the commit. It takes over the reference.
func (t *txState) publish(ch *channel, m *core.Message) {
	t.publishes = append(t.publishes, txPublish{m: m, target: ch.pub.target, mandatory: ch.pub.mandatory})
}

func (t *txState) settle(kind settleKind, tag uint64) {
	t.settles = append(t.settles, txSettle{kind, tag})
	t.settled[tag] = struct{}{}
}

// holds reports whether a tag was settled in this transaction already.
func (t *txState) holds(tag uint64) bool {
	_, ok := t.settled[tag]
	return ok
}

func (t *txState) settleUpTo(ch *channel, kind settleKind, tag uint64) {
	for at := ch.unacked.next(0); at != 0 && (tag == 0 || at <= tag); at = ch.unacked.next(at + 1) {
		if !t.holds(at) {
			t.settle(kind, at)
		}
	}
}

// drop forgets the transaction; what was held is released.
func (t *txState) drop(ch *channel) {
	for _, p := range t.publishes {
		p.m.Release(ch.c.shard.Arena())
	}
	if t.waiting > 0 {
		ch.c.waiting = false // the commit that it waited for is nobody's any more
	}
	*t = txState{settled: map[uint64]struct{}{}}
}

func (ch *channel) txRollback(args []byte) {
	var m amqp091.TxRollback
	if !ch.decode(amqp091.MethodTxRollback, m.Decode(args)) {
		return
	}
	if ch.tx == nil {
		ch.fail(amqp091.PreconditionFailed, amqp091.MethodTxRollback, "channel is not transactional")
		return
	}
	ch.tx.drop(ch)
	ch.send(&amqp091.TxRollbackOk{})
}

// txCommit makes the transaction's acts take effect and answers when every
// queue has what it was given (TX-03, TX-04).
func (ch *channel) txCommit(args []byte) {
	var m amqp091.TxCommit
	if !ch.decode(amqp091.MethodTxCommit, m.Decode(args)) {
		return
	}
	t := ch.tx
	if t == nil {
		ch.fail(amqp091.PreconditionFailed, amqp091.MethodTxCommit, "channel is not transactional")
		return
	}
	publishes, settles := t.publishes, t.settles
	*t = txState{settled: map[uint64]struct{}{}, waiting: 1}
	for _, p := range publishes {
		ch.txPublish(t, p)
	}
	ch.awaitSettled(t, settles)
	ch.windowMoved()
	ch.c.waiting = true
	t.done = func() {
		ch.c.waiting = false
		if ch.closing || ch.c.state != stateOpen {
			return
		}
		if t.refused {
			t.refused = false
			ch.fail(amqp091.PreconditionFailed, amqp091.MethodTxCommit, "partial tx completion")
			return
		}
		ch.send(&amqp091.TxCommitOk{})
	}
	ch.tx.answered(ch, true)
}

func (ch *channel) txPublish(t *txState, p txPublish) {
	s := ch.c.shard
	queues := ch.routeSpecial(p.m, p.target, p.more)
	if to := ch.requesters(nil, p.m, p.target, p.more); len(to) > 0 {
		if len(queues) == 0 {
			t.waiting++
			ch.reply(p.m, to, p.mandatory, true, 0)
			return
		}
		ch.sendReplies(p.m, to)
	}
	if len(queues) == 0 {
		if p.mandatory {
			ch.giveBack(p.m)
		}
		p.m.Release(s.Arena())
		return
	}
	p.m.AddRef(int32(len(queues) - 1))
	pending, refused, _ := s.PublishAll(queues, p.m, ch, 0)
	t.waiting += int(pending)
	t.refused = t.refused || refused
}

// awaitSettled makes a commit wait until what it settles is durable, on each loop
// that has to do with it.
func (ch *channel) awaitSettled(t *txState, settles []txSettle) {
	shards := map[int]struct{}{}
	for _, st := range settles {
		if r := ch.unacked.find(st.tag); r != nil {
			shards[ch.slots[r.slot].queue.Shard] = struct{}{}
			ch.settleOne(st.kind, st.tag, r)
		}
	}
	for n := range shards {
		t.waiting++
		ch.c.shard.OnDurable(n, func(*engine.Shard) {}, func() {
			if !ch.ended {
				t.answered(ch, true)
			}
		})
	}
}

// answered counts one answer of a commit.
func (t *txState) answered(ch *channel, accepted bool) {
	t.refused = t.refused || !accepted
	if t.waiting--; t.waiting == 0 && t.done != nil {
		done := t.done
		t.done = nil
		ch.c.wake()
		done()
	}
}

// qos handles basic.qos (BAS-01, QOS-01 to QOS-03).
func (ch *channel) qos(args []byte) {
	var m amqp091.BasicQos
	if !ch.decode(amqp091.MethodBasicQos, m.Decode(args)) {
		return
	}
	if m.PrefetchSize != 0 {
		ch.c.fail(amqp091.NotImplemented, amqp091.MethodBasicQos, fmt.Sprintf("prefetch_size!=0 (%d)", m.PrefetchSize))
		return
	}
	if m.Global {
		ch.setWindow(int32(m.PrefetchCount))
	} else {
		ch.prefetch = m.PrefetchCount
		if ch.window != nil && ch.window.Limited() {
			ch.setWindow(0)
		}
	}
	ch.send(&amqp091.BasicQosOk{})
}

// setWindow changes the window that all consumers of the channel share.
func (ch *channel) setWindow(limit int32) {
	if ch.window == nil {
		if limit == 0 {
			return
		}
		ch.window = &queue.Window{}
	}
	was := ch.window.Limited()
	ch.window.SetLimit(limit)
	if !was && limit > 0 {
		ch.unacked.each(func(r *record) {
			if !r.counted && ch.slots[r.slot].consumer != nil {
				r.counted = true
				ch.window.Add(1)
			}
		})
	}
	for _, k := range ch.consumers {
		ch.c.shard.SetWindow(&k.sub, ch.window)
	}
}

// recover handles basic.recover and recover-async (BAS-14).
func (ch *channel) recover(id amqp091.MethodID, args []byte) {
	var m amqp091.BasicRecover
	if !ch.decode(id, m.Decode(args)) {
		return
	}
	if !m.Requeue {
		ch.c.fail(amqp091.NotImplemented, id, "requeue=false")
		return
	}
	if ch.tx == nil {
		ch.settleUpTo(settleRequeue, 0)
	} else {
		// What the transaction has settled already is its own until it ends.
		for tag := ch.unacked.next(0); tag != 0; tag = ch.unacked.next(tag + 1) {
			if !ch.tx.holds(tag) {
				ch.settleOne(settleRequeue, tag, ch.unacked.find(tag))
			}
		}
	}
	ch.windowMoved()
	if id == amqp091.MethodBasicRecover {
		ch.send(&amqp091.BasicRecoverOk{})
	}
}
