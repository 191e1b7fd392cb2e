// Package crash proves, from outside and on both I/O backends, that what the broker confirmed is still there after
// it was killed, was stopped, ran out of disk, or had its disk fail.
//
// What lives here: the history of a run and its check (history.go, check.go), clients that record what they see, and the
// tests that end brokers in every way. What may not: any import of the broker's packages, and any assertion about time.
//
// # The history
//
// Every client writes down what it did and saw, one event each, in one list: published, confirmed, delivered,
// acknowledged, and on top of that when the broker was killed or stopped. The check replays the list at the end. Its
// rules:
//
//   - lost: a message that was confirmed and not settled since it was last seen must come in the final drain.
//   - invented: each delivery was published, to that queue, with exactly these bytes and properties.
//   - twice: any delivery after the first says so (redelivered).
//   - flagged: a first delivery says "redelivered" only if a crash, or a client that went away with deliveries unread,
//     gives it reason to.
//   - back: what was settled does not come again, on an open channel, after an orderly stop, or, if a
//     transaction settled it, after anything. An acknowledgement outside a transaction has no answer, so a crash
//     may undo it.
//   - owners: nothing is delivered while another open channel holds it.
//   - order: what one publisher sent to one queue arrives in that order, as far as each consumer sees it for the first
//     time.
//
// A dead-letter target may get a message as often as it was rejected, because a crash may undo the rejection and
// not the copy.
//
// Laws:
//   - Publishing, settling: written down before it is sent. Confirmed, delivered: after it was received. So the list never
//     holds an effect before its cause.
//   - A checker that has never failed proves nothing: planted_test.go plants each fault and wants it found.
//   - A run in which something never happened (no confirm, no kill, no redelivery) fails.
//   - Seeds are printed; RINGMQ_TEST_SEED repeats one.
//
// Environment:
//
//	RINGMQ_TEST_ROUNDS   how often the broker is ended in all, over both backends (6; "make crash" says 40).
//	RINGMQ_TEST_SEED     the first seed, instead of one drawn from the clock.
//	RINGMQ_TEST_KEEP     non-empty: the data folder of a test that failed stays.
package crash
