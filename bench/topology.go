package bench

import "errors"

// The declarations that scenarios need, each one call and its answer.

func (c *conn) openChannel(channel uint16) error {
	_, err := c.call(channel, channelOpen, []byte{0}, channelOpenOk)
	return err
}

func (c *conn) closeChannel(channel uint16) error {
	args := be.AppendUint16(nil, 200)
	args = append(appendShortstr(args, "bye"), 0, 0, 0, 0)
	_, err := c.call(channel, channelClose, args, channelCloseOk)
	return err
}

// declareQueue declares name on channel 1, never exclusive or auto-delete so
// that every connection of a run can use it.
func (c *conn) declareQueue(name string, durable bool, arguments map[string]any) error {
	bits := byte(0)
	if durable {
		bits = 2
	}
	args := append(appendShortstr([]byte{0, 0}, name), bits)
	args, err := appendTable(args, arguments)
	if err != nil {
		return err
	}
	_, err = c.call(1, queueDeclare, args, queueDeclareOk)
	return err
}

// deleteQueue deletes name with whatever it holds and returns the number of
// messages that were in it. A missing queue is no error (QUE-10).
func (c *conn) deleteQueue(name string) (uint32, error) {
	args, err := c.call(1, queueDelete, append(appendShortstr([]byte{0, 0}, name), 0), queueDeleteOk)
	if err != nil || len(args) < 4 {
		return 0, err
	}
	return be.Uint32(args), nil
}

// countQueue returns how many messages wait in name, which must exist.
func (c *conn) countQueue(name string) (int64, error) {
	const passive = 1
	args := append(appendShortstr([]byte{0, 0}, name), passive, 0, 0, 0, 0)
	args, err := c.call(1, queueDeclare, args, queueDeclareOk)
	if err != nil {
		return 0, err
	}
	if len(args) < 1 || len(args) < 1+int(args[0])+8 {
		return 0, errors.New("queue.declare-ok is too short")
	}
	return int64(be.Uint32(args[1+int(args[0]):])), nil
}

func (c *conn) declareExchange(name, kind string, durable bool) error {
	bits := byte(0)
	if durable {
		bits = 2
	}
	args := appendShortstr(appendShortstr([]byte{0, 0}, name), kind)
	args = append(args, bits, 0, 0, 0, 0)
	_, err := c.call(1, exchangeDeclare, args, exchangeDeclareOk)
	return err
}

func (c *conn) deleteExchange(name string) error {
	_, err := c.call(1, exchangeDelete, append(appendShortstr([]byte{0, 0}, name), 0), exchangeDeleteOk)
	return err
}

func (c *conn) bindQueue(queue, exchange, key string) error {
	args := appendShortstr([]byte{0, 0}, queue)
	args = appendShortstr(args, exchange)
	args = appendShortstr(args, key)
	args = append(args, 0, 0, 0, 0, 0)
	_, err := c.call(1, queueBind, args, queueBindOk)
	return err
}

// qos limits unacknowledged deliveries per consumer; 0 is no limit.
func (c *conn) qos(prefetch int) error {
	args := be.AppendUint16([]byte{0, 0, 0, 0}, uint16(prefetch))
	_, err := c.call(1, basicQos, append(args, 0), basicQosOk)
	return err
}

// confirmMode switches channel 1 to publisher confirms.
func (c *conn) confirmMode() error {
	_, err := c.call(1, confirmSelect, []byte{0}, confirmSelectOk)
	return err
}

// consume starts a consumer without awaiting the answer: consume-ok and the
// first deliveries come together and belong to the scanner.
func (c *conn) consume(queue, tag string, autoAck bool) error {
	args := appendShortstr([]byte{0, 0}, queue)
	args = appendShortstr(args, tag)
	bits := byte(0)
	if autoAck {
		bits = 2
	}
	args = append(args, bits, 0, 0, 0, 0)
	c.out = appendMethod(c.out[:0], 1, basicConsume, args)
	return c.write(c.out)
}
