package session091

import (
	"ringmq/engine"
	"ringmq/frame/amqp091"
)

// While an alarm is up a connection is stopped at its next basic.publish: the
// method is taken, and nothing that follows is read until the last alarm clears.
// Whoever does not publish is never stopped, so that consumers and acks can bring
// the memory or the disk back (spec C.8). A publish that began before the alarm
// may finish.
//
// RabbitMQ stops whoever published once as soon as the alarm comes. We only tell
// those: a client that heeds connection.blocked can go on to acknowledge on the
// same connection.

// block stops a connection that publishes while an alarm is up. ch is where. A
// connection whose peer has gone is let through: all its input is here already.
func (c *conn) block(ch *channel, up engine.Alarm) {
	if c.inputEnded {
		return
	}
	c.blocked, c.blockedAt = true, ch
	c.tellBlocked(up)
	c.srv.log.Debug("publisher blocked", "connection", c.name, "client", c.client, "reason", up.String())
}

// tellBlocked sends connection.blocked, once for each time that it is true.
func (c *conn) tellBlocked(up engine.Alarm) {
	if c.blockTold {
		return
	}
	c.blockTold = true
	if c.caps.blocked {
		c.send(0, &amqp091.ConnectionBlocked{Reason: []byte(up.String())})
	}
}

// unblock lets a connection go on.
func (c *conn) unblock() {
	if c.blockTold {
		c.blockTold = false
		if c.caps.blocked {
			c.send(0, &amqp091.ConnectionUnblocked{})
		}
	}
	if !c.blocked {
		return
	}
	// The alarm may have lasted for hours: what the publish was resolved to when its
	// method came may be gone.
	if ch := c.blockedAt; !ch.ended && ch.content == contentHeader {
		p := &ch.pub
		p.epoch, p.routed = c.vhost.Epoch(), false
		p.target = c.vhost.Exchange(p.exchange)
	}
	c.endBlock()
}

// endBlock reads on without a word; a connection that closes needs to hear the
// client's close-ok.
func (c *conn) endBlock() {
	if c.blocked {
		c.blocked, c.blockedAt = false, nil
		c.wake()
	}
}

// blockState is the connection's state in listings while an alarm is up, "" when
// it does not concern it.
func (c *conn) blockState() string {
	switch {
	case c.blocked:
		return "blocked"
	case c.blockTold:
		return "blocking"
	}
	return ""
}

// alarmChanged is told by the engine, on any goroutine.
func (s *Server) alarmChanged() {
	for _, lp := range s.loops {
		lp.loop.Post(lp.heedAlarms) // a loop that has stopped has no publishers
	}
}

// heedAlarms brings the loop's connections in line with the alarms that are up.
func (lp *loopState) heedAlarms() {
	up := lp.srv.Broker.Alarms()
	for c := range lp.conns {
		switch {
		case c.state != stateOpen:
		case up == 0:
			c.unblock()
		case c.publisher:
			c.tellBlocked(up)
		}
	}
}
