// Package leak moves many messages through many connections that behave badly, and then holds the broker to its own
// counters: whatever was taken for them must have been given back.
//
// What lives here: the soak and the list of gauges that must return to their baseline. What may not: looking into
// the broker's memory other than through GET /metrics and /proc.
//
// Laws:
//   - A gauge that the broker no longer exports fails the test: a renamed counter must not make it prove nothing.
//   - The soak ends by a count of messages received, not by a time.
//
// RINGMQ_SOAK sets the number of messages (10000000 for the full run; the ordinary run is small).
package leak
