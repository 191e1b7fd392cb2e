// Command gen writes the method codecs of package amqp091 from the table in
// gen/methods.txt. Run it by `go generate ./frame/...`; a test of this folder
// fails when the files in the tree are not what the table gives.
//
// What lives here: the reader of the table (parse.go) and the writer of Go text
// (emit.go). What may not: anything a running broker needs.
package main
