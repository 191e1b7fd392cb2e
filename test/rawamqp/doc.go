// Package rawamqp is a small AMQP 0-9-1 peer for tests: it sends exactly the
// frames it is told to, legal or not, and says exactly what came back.
//
// What lives here: a connection over net.Conn on top of frame/amqp091 with a
// handshake that can be stopped, bent or replaced at each step (Conn), and the
// same with every failure ending the test (Client). What may not: knowledge of
// the broker's inside, retries, reconnection, or any cleverness that would hide a
// frame from the test.
//
// A conformance test reads like this:
//
//	c := rawamqp.New(t, addr, rawamqp.Options{})
//	c.OpenChannel(1)
//	c.Send(1, &amqp091.QueueDeclare{Queue: []byte("absent"), Passive: true})
//	c.ExpectChannelClose(1, amqp091.NotFound, "no queue 'absent'")
//
// Laws: every read has a deadline; nothing is sent that the test did not ask for,
// except the answers to a close that an Expect function awaited and heartbeats
// after StartHeartbeats; the peer's frames are checked against frame-max and
// their end octet, for a server's mistakes are findings too.
package rawamqp
