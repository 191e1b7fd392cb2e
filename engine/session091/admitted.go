package session091

import (
	"ringmq/engine"
	"ringmq/frame/amqp091"
)

// takeSeat takes the connection's place under the limits of its vhost and user
// (CON-14). It reports false when there is none and the client was told.
func (c *conn) takeSeat(v *engine.VHost) bool {
	seat, err := c.srv.Broker.Seat(v, c.user)
	if err != nil {
		c.fail(amqp091.NotAllowed, amqp091.MethodConnectionOpen, err.Text)
		return false
	}
	c.seat = seat
	return true
}

// leaveSeat gives the place back, with those of the channels. Whoever hears that the
// connection is closed finds it free.
func (c *conn) leaveSeat() {
	c.seat.Leave()
	c.seat = nil
}

// vhostDeleted ends the connections of a vhost that cannot be found any more (CON-19).
// When it returns none of them takes another command: a loop handles connection.open in
// one go, so that it sees the vhost gone, or we see the connection.
func (s *Server) vhostDeleted(v *engine.VHost) {
	s.onLoops(func(lp *loopState) {
		for c := range lp.conns {
			if c.vhost == v {
				c.force("vhost '" + v.Name + "' is deleted")
			}
		}
	})
}
