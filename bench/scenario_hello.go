package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// hello: one message through, and what happened on the way.
func hello(ctx context.Context, t *target, o *Options) (*Result, error) {
	r := &Result{Settings: "one message, confirmed and acknowledged"}
	start := time.Now()
	lap := func(what string) {
		r.add(what, "us", float64(time.Since(start).Nanoseconds())/1e3, lowerIsBetter)
		start = time.Now()
	}
	c, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	lap("connect, log in, open a channel")

	queue := o.queues("bench-hello")[0]
	if err := c.declareQueue(queue, o.Persistent, o.queueArgs); err != nil {
		return nil, err
	}
	if err := c.confirmMode(); err != nil {
		return nil, err
	}
	lap("declare a queue, ask for confirms")

	text := "hello from ringmq bench"
	c.out = appendPublish(c.out[:0], 1, publish{key: queue, body: []byte(text), persistent: o.Persistent, mandatory: true}, c.frameMax)
	if err := c.write(c.out); err != nil {
		return nil, err
	}
	if _, err := c.await(basicAck); err != nil {
		return nil, err
	}
	lap("publish until confirmed")

	if err := c.consume(queue, "hello", false); err != nil {
		return nil, err
	}
	got, err := c.awaitBody()
	if err != nil {
		return nil, err
	}
	lap("consume until delivered")
	if got != text {
		return nil, fmt.Errorf("sent %q, got %q", text, got)
	}
	c.out = appendAck(c.out[:0], 1, 1, false)
	if err := c.write(c.out); err != nil {
		return nil, err
	}
	left, err := c.deleteQueue(queue)
	if err != nil {
		return nil, err
	}
	lap("acknowledge, delete the queue")
	if left != 0 {
		return nil, fmt.Errorf("%d messages were left in the queue after the acknowledgement", left)
	}
	r.note("frame-max %d; %q went through %s", c.frameMax, got, t.name)
	return r, nil
}

// awaitBody reads up to the next body frame.
func (c *conn) awaitBody() (string, error) {
	for {
		frame, err := c.readFrame()
		if err != nil {
			return "", err
		}
		switch frame[0] {
		case frameBody:
			return string(frame[frameHeadSize : len(frame)-1]), nil
		case frameMethod:
			if err := closeError(frame); err != nil {
				return "", err
			}
			if be.Uint32(frame[frameHeadSize:]) == basicCancel {
				return "", errors.New("the broker cancelled the consumer")
			}
		}
	}
}
