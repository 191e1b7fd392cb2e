// Package bench is the load generator behind `ringmq bench`.
//
// It speaks AMQP 0-9-1 to any broker over plain TCP, with frames that are
// encoded once before the clock starts, so that on a small machine the broker
// and not the generator is what gets measured:
//
//	producer: one batch of encoded publishes, written over and over
//	          [publish|header|body][publish|header|body] ... one write(2)
//	consumer: one big read(2), a walk over the frame heads, counters
//	          [deliver|header|body][deliver|header|body] ... one ack per N
//
// What lives here: the options, the encoder (wire.go), the frame walk
// (scan.go), the connection (client.go), the generic flow of producers and
// consumers that most scenarios are settings of (flow.go, producer.go,
// consumer.go), pacing, process accounting, reports and the paired mode, the
// server that the bench starts, kills and starts again (server.go), and the bare
// loops that durable figures are held against (disk.go, loopback.go,
// disk_read.go). Package peers starts other brokers for comparison.
//
// Durability has three scenarios:
//
//	confirm   what a synced confirm costs, beside a bare write and sync on the
//	          same file system and a bare round trip, in the same round
//	recovery  start to ready on a folder full of confirmed messages, beside a
//	          bare read of the same files; or of acknowledged ones
//	bigqueue  a queue several times the memory limit, filled and drained while
//	          the server's memory is watched
//
// What may not live here: anything that imports the broker. A bench that
// shares code with what it measures proves little.
//
// Laws:
//   - A figure never stands alone: the report carries machine, settings, seed,
//     broker version and what the generator itself cost.
//   - Latency starts at the intended send time, which travels in the body. A
//     late generator therefore makes a figure worse and never better, and its
//     own lateness is reported beside it.
//   - A number that could not be had is printed as n/a, never as zero.
//   - A bare loop is the fastest that we can write. One that is slow flatters the
//     broker; where there are two ways to sync, the better counts.
//   - Comparisons are paired: rounds alternate between the sides within one
//     run and medians are compared.
package bench
