package bench

import "fmt"

// consumer reads the deliveries of one connection.
type consumer struct {
	c        *conn
	flow     *flow
	ackEvery int // 0 auto-ack, ackPerRead, or N
	scan     scanner
	acked    uint64 // highest tag acknowledged
	acks     []byte

	delivered counter
	latency   *histogram            // with scan.wantStamps; measured window only
	onStamps  func(stamps []uint64) // soak: instead of latency
}

// run reads until the flow stops. The loop has no allocation and one clock
// reading per socket read.
func (k *consumer) run() error {
	for !k.flow.stopped.Load() {
		if err := k.c.fill(); err != nil {
			return k.explain(err)
		}
		before := k.scan.messages
		n, err := k.scan.scan(k.c.in[k.c.start:k.c.end])
		k.c.start += n
		if err != nil {
			return k.explain(err)
		}
		if got := k.scan.messages - before; got > 0 {
			k.takeStamps()
			k.delivered.Add(got)
			if k.ackEvery != 0 {
				if err := k.ack(); err != nil {
					return k.explain(err)
				}
			}
		}
		if k.scan.otherCount > 0 {
			k.scan.otherCount = 0
			if err := k.other(); err != nil {
				return k.explain(err)
			}
		}
	}
	return nil
}

func (k *consumer) takeStamps() {
	if len(k.scan.stamps) == 0 {
		return
	}
	if k.onStamps != nil {
		k.onStamps(k.scan.stamps)
	} else {
		now := nowNS()
		for _, stamp := range k.scan.stamps {
			if k.flow.measuring(int64(stamp)) {
				k.latency.record(now-int64(stamp), 1)
			}
		}
	}
	k.scan.stamps = k.scan.stamps[:0]
}

// ack acknowledges what is due, all in one write: a client that acknowledges
// in time does the same when it finds several deliveries in its buffer.
func (k *consumer) ack() error {
	k.acks = k.acks[:0]
	if k.ackEvery == ackPerRead {
		k.acked = k.scan.tag
		k.acks = appendAck(k.acks, 1, k.acked, true)
		return k.c.write(k.acks)
	}
	every := uint64(k.ackEvery)
	for k.scan.tag-k.acked >= every {
		k.acked += every
		k.acks = appendAck(k.acks, 1, k.acked, every > 1)
	}
	if len(k.acks) == 0 {
		return nil
	}
	return k.c.write(k.acks)
}

// other fails on a close or on a cancelled consumer.
func (k *consumer) other() error {
	if err := closeError(k.scan.other); err != nil {
		return err
	}
	if be.Uint32(k.scan.other[frameHeadSize:]) == basicCancel {
		return fmt.Errorf("the broker cancelled the consumer")
	}
	return nil
}

func (k *consumer) explain(err error) error {
	if k.flow.stopped.Load() {
		return nil
	}
	return fmt.Errorf("consumer: %w", err)
}
