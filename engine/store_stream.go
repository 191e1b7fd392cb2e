//ringmq:hot

package engine

import "ringmq/engine/queue"

// Safe implements queue.Store.
func (st *store) Safe(pos uint64) bool { return walPosition(pos) < st.wal.Committed() }

// Await implements queue.Store. The answer takes the way of a lease's, which knows
// what to wait for.
func (st *store) Await(q *queue.Queue) {
	st.waiters.push(waiter{end: st.wal.End(), q: q, lease: 1})
}
