// Package peers starts other brokers that are installed on the machine, each
// on ports and folders of its own, with the settings that its documentation
// recommends for throughput, so that a comparison is with a peer at its best.
//
// What lives here: one file per peer with one Start function. What may not:
// any measuring, and any process that outlives its Stop.
package peers
