package session091

import (
	"bytes"
	"fmt"
	"time"

	"ringmq/frame/amqp091"
)

// Times of the connection's life that are not negotiated.
const (
	dropDelay = 3 * time.Second // before the socket of a refused peer closes (CON-05 to CON-08)
	closeWait = 5 * time.Second // for the client's close-ok
)

// frameMaxMin is the smallest frame-max of the protocol; frameMaxEarly the
// largest frame before it was negotiated (CON-13).
const (
	frameMaxMin   = 4096
	frameMaxEarly = 16384
)

// compatVersion is the RabbitMQ version whose behaviour clients may assume:
// several of them switch features on by it.
const compatVersion = "3.13.7"

// arm sets the connection's one timer.
func (c *conn) arm(purpose timerPurpose, d time.Duration) {
	c.timerDo = purpose
	c.lp.loop.Arm(&c.timer, c.lp.loop.Now()+int64(d))
}

// fire is the connection's timer.
func (c *conn) fire(now int64) {
	switch c.timerDo {
	case timerHandshake:
		if c.state < stateOpen {
			c.srv.log.Warn("handshake timed out", "connection", c.name, "stage", c.state.String())
			c.abort()
		}
	case timerHeartbeat:
		c.beat(now)
	case timerCloseWait:
		c.finish()
	case timerDrop:
		c.rc.Close()
	}
}

// abort gives the connection up without a word.
func (c *conn) abort() {
	if c.state < stateClosing {
		c.release()
	}
	if c.state < stateDying {
		c.state = stateDying
	}
	c.rc.Abort()
	c.endIfDeaf()
}

func (s state) String() string {
	return [...]string{"protocol header", "start-ok", "tune-ok", "open", "open", "closing", "dying", "dead"}[s]
}

// beat is one tick of a quarter of the heartbeat interval (HB-01, HB-02): a heartbeat
// leaves when there would be nothing for more than half of it otherwise.
func (c *conn) beat(now int64) {
	if c.state != stateOpen && c.state != stateTuned {
		return
	}
	interval := int64(c.heartbeat) * int64(time.Second)
	tick := interval / 4
	if out := c.rc.BytesOut(); out != c.outSeen {
		// Some time since the last tick: it counts as then.
		c.outSeen, c.outAt = out, now-tick
	}
	// While reading is paused by us the silence is our own doing. But whoever
	// is not read from because it does not read may be gone just as well.
	silent := now - max(c.rc.LastRead(), c.resumedAt)
	if c.choked {
		silent = min(silent, now-c.outAt)
	} else if len(c.stash) > 0 || c.stopped() {
		silent = 0
	}
	if silent > 2*interval+interval/2 {
		c.srv.log.Warn("missed heartbeats", "connection", c.name, "client", c.client, "timeout_s", c.heartbeat)
		c.abort()
		return
	}
	// The next tick would be too late; half a tick is for timers that are.
	if now+tick-c.outAt > interval/2+tick/2 && c.rc.Pending() == 0 {
		c.rc.Write([]byte{amqp091.FrameHeartbeat, 0, 0, 0, 0, 0, 0, amqp091.FrameEnd})
	}
	c.arm(timerHeartbeat, time.Duration(tick))
}

func (c *conn) sendStart() {
	c.state = stateStart
	c.frameMax = frameMaxEarly
	var caps []byte
	for _, name := range []string{
		"publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
		"consumer_priorities", "authentication_failure_close", "per_consumer_qos", "connection.blocked",
		"direct_reply_to",
	} {
		caps = amqp091.AppendBool(caps, name, true)
	}
	var props []byte
	props = amqp091.AppendTable(props, "capabilities", caps)
	props = amqp091.AppendString(props, "cluster_name", "ringmq@localhost")
	props = amqp091.AppendString(props, "copyright", "The ringmq authors")
	props = amqp091.AppendString(props, "information", "ringmq "+c.srv.opts.Version+", compatible with RabbitMQ "+compatVersion+". Apache License 2.0")
	props = amqp091.AppendString(props, "platform", "ringmq/"+c.srv.opts.Version)
	props = amqp091.AppendString(props, "product", "RabbitMQ")
	props = amqp091.AppendString(props, "version", compatVersion)
	c.send(0, &amqp091.ConnectionStart{
		VersionMajor: 0, VersionMinor: 9, ServerProperties: props,
		Mechanisms: []byte("AMQPLAIN PLAIN"), Locales: []byte("en_US"),
	})
}

// handshake handles the methods before the connection is open (CON-15).
func (c *conn) handshake(id amqp091.MethodID, args []byte) {
	switch {
	case c.state == stateStart && id == amqp091.MethodConnectionStartOk:
		c.startOk(args)
	case c.state == stateTune && id == amqp091.MethodConnectionTuneOk:
		c.tuneOk(args)
	case c.state == stateTuned && id == amqp091.MethodConnectionOpen:
		c.open(args)
	case id == amqp091.MethodConnectionClose:
		c.send(0, &amqp091.ConnectionCloseOk{})
		c.finish()
	default:
		c.drop("method " + id.String() + " while waiting for " + c.state.String())
	}
}

func (c *conn) startOk(args []byte) {
	var m amqp091.ConnectionStartOk
	if err := m.Decode(args); err != nil {
		c.drop("undecodable connection.start-ok: " + err.Error())
		return
	}
	c.clientProps = bytes.Clone(m.ClientProperties)
	if v, ok := m.ClientProperties.Lookup("connection_name"); ok {
		name, _ := v.Str()
		c.client = string(name)
	}
	if v, ok := m.ClientProperties.Lookup("capabilities"); ok {
		if t, ok := v.Table(); ok {
			c.caps = capabilities{
				cancelNotify: flag(t, "consumer_cancel_notify"),
				authClose:    flag(t, "authentication_failure_close"),
				blocked:      flag(t, "connection.blocked"),
			}
		}
	}
	user, password, ok := credentials(string(m.Mechanism), m.Response)
	if !ok {
		c.drop(fmt.Sprintf("mechanism %q not offered or its response malformed", m.Mechanism))
		return
	}
	if from := c.rc.RemoteAddr().Addr(); !c.srv.CheckLogin(user, password, from) {
		c.loginFailed(user, string(m.Mechanism), c.srv.refusal(user, password, from))
		return
	}
	c.user = user
	c.state = stateTune
	c.send(0, &amqp091.ConnectionTune{
		ChannelMax: c.srv.opts.ChannelMax, FrameMax: c.srv.opts.FrameMax,
		Heartbeat: uint16(c.srv.opts.Heartbeat / time.Second),
	})
}

func flag(t amqp091.Table, name string) bool {
	v, _ := t.Lookup(name)
	b, _ := v.Bool()
	return b
}

// loginFailed answers CON-06: the same for every reason; the log knows it.
func (c *conn) loginFailed(user, mechanism, reason string) {
	c.srv.log.Warn("login refused", "connection", c.name, "client", c.client, "user", user, "mechanism", mechanism, "reason", reason)
	c.srv.countLoginFailure()
	if c.caps.authClose {
		text := "ACCESS_REFUSED - Login was refused using authentication mechanism " + mechanism + ". For details see the broker logfile."
		c.send(0, &amqp091.ConnectionClose{ReplyCode: amqp091.AccessRefused, ReplyText: []byte(text)})
		c.state = stateClosing
		c.arm(timerCloseWait, closeWait)
		return
	}
	c.drop("login refused")
}

// credentials reads a PLAIN or AMQPLAIN response (CON-07, CON-08).
func credentials(mechanism string, response []byte) (user, password string, ok bool) {
	switch mechanism {
	case "PLAIN":
		parts := bytes.Split(response, []byte{0})
		if len(parts) != 3 || len(parts[0]) != 0 {
			return "", "", false
		}
		return string(parts[1]), string(parts[2]), true
	case "AMQPLAIN":
		t := amqp091.Table(response)
		if t.Validate() != nil {
			return "", "", false
		}
		login, ok1 := t.Lookup("LOGIN")
		pass, ok2 := t.Lookup("PASSWORD")
		u, ok3 := login.Str()
		p, ok4 := pass.Str()
		return string(u), string(p), ok1 && ok2 && ok3 && ok4
	}
	return "", "", false
}

// tuneOk takes the client's choice (CON-10 to CON-12; 0 means the offer).
func (c *conn) tuneOk(args []byte) {
	var m amqp091.ConnectionTuneOk
	if err := m.Decode(args); err != nil {
		c.drop("undecodable connection.tune-ok: " + err.Error())
		return
	}
	offer := &c.srv.opts
	if m.ChannelMax == 0 {
		m.ChannelMax = offer.ChannelMax
	}
	if m.FrameMax == 0 {
		m.FrameMax = offer.FrameMax
	}
	switch {
	case offer.ChannelMax != 0 && m.ChannelMax > offer.ChannelMax:
		c.drop(fmt.Sprintf("negotiated channel_max = %d is higher than the maximum allowed value (%d)", m.ChannelMax, offer.ChannelMax))
		return
	case offer.FrameMax != 0 && m.FrameMax > offer.FrameMax:
		c.drop(fmt.Sprintf("negotiated frame_max = %d is higher than the maximum allowed value (%d)", m.FrameMax, offer.FrameMax))
		return
	case m.FrameMax < frameMaxMin:
		c.refuseTune(m.FrameMax)
		return
	}
	c.channelMax, c.frameMax, c.heartbeat = m.ChannelMax, m.FrameMax, m.Heartbeat
	c.state = stateTuned
}

// refuseTune tells why before it drops the connection: a client with so small
// a frame-max is misconfigured, not hostile.
func (c *conn) refuseTune(frameMax uint32) {
	text := fmt.Sprintf("NOT_ALLOWED - negotiated frame_max = %d is lower than the minimum allowed value (%d)", frameMax, frameMaxMin)
	c.send(0, &amqp091.ConnectionClose{
		ReplyCode: amqp091.NotAllowed, ReplyText: []byte(text),
		FailedClass: 10, FailedMethod: 31,
	})
	c.drop(text)
}

func (c *conn) open(args []byte) {
	var m amqp091.ConnectionOpen
	if err := m.Decode(args); err != nil {
		c.drop("undecodable connection.open: " + err.Error())
		return
	}
	v := c.srv.Broker.VHost(string(m.VirtualHost))
	if v == nil {
		c.fail(amqp091.NotAllowed, amqp091.MethodConnectionOpen, "vhost "+string(m.VirtualHost)+" not found")
		return
	}
	if !c.takeSeat(v) {
		return
	}
	c.vhost = v
	c.state = stateOpen
	c.lp.loop.Disarm(&c.timer)
	if c.heartbeat > 0 {
		c.outSeen = c.rc.BytesOut() + uint64(c.rc.Pending())
		c.outAt = c.lp.loop.Now()
		c.arm(timerHeartbeat, time.Duration(c.heartbeat)*time.Second/4)
	}
	c.send(0, &amqp091.ConnectionOpenOk{})
	c.srv.log.Info("connection open", "connection", c.name, "client", c.client, "user", c.user, "vhost", v.Name)
}

// method handles a method on channel 0 of an open connection.
func (c *conn) method(id amqp091.MethodID, args []byte) {
	switch id {
	case amqp091.MethodConnectionClose:
		c.closeByClient(args)
	case amqp091.MethodConnectionCloseOk:
		c.fail(amqp091.ChannelError, id, "unexpected method in connection state running")
	case amqp091.MethodConnectionUpdateSecret:
		var m amqp091.ConnectionUpdateSecret
		if err := m.Decode(args); err != nil {
			c.undecodable(id, err)
			return
		}
		c.send(0, &amqp091.ConnectionUpdateSecretOk{})
	default:
		if !id.Known() {
			c.fail(amqp091.CommandInvalid, id, "unimplemented method")
			return
		}
		c.fail(amqp091.ChannelError, id, "unexpected method in connection state running")
	}
}

// closeByClient is the client's orderly end (CON-17): channels first, then
// exclusive queues, then close-ok.
func (c *conn) closeByClient(args []byte) {
	var m amqp091.ConnectionClose
	if err := m.Decode(args); err != nil {
		c.undecodable(amqp091.MethodConnectionClose, err)
		return
	}
	var others []int
	c.each(func(ch *channel) {
		ch.flushConfirms()
		others = ch.otherShards(others)
		ch.end()
	})
	c.low, c.high, c.channels = nil, nil, 0
	c.fence(others, func() {
		c.waiting = true
		c.deleteExclusive(func() {
			c.waiting = false
			c.wake()
			c.leaveSeat()
			if c.state != stateOpen && c.state != stateClosing {
				return
			}
			c.srv.log.Info("connection closed", "connection", c.name, "client", c.client, "user", c.user)
			c.send(0, &amqp091.ConnectionCloseOk{})
			c.state = stateClosing // nothing is left to release
			c.finish()
		})
	})
}

// undecodable answers malformed arguments (WIR-13).
func (c *conn) undecodable(id amqp091.MethodID, err error) {
	c.fail(amqp091.FrameError, id, "cannot decode "+id.String()+": "+err.Error())
}
