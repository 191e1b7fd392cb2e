package main

import "time"

// serveOptions holds every setting of "ringmq serve". The tags are the only place where a
// setting is described:
//
//	name     the flag (--name), the configuration key (name = ...), and, in capitals after
//	         RINGMQ_ with '-' as '_', the environment variable
//	default  its value when nobody says otherwise
//	want     what a good value looks like, in the words of an error message
//	help     one sentence; docs/configuration.md prints it
//	only     "flag": neither configuration key nor environment variable; "flag,env": no key
//	min,max  bounds of a number or a duration
//	enum     the accepted words
//	multiple what a size is a whole multiple of
//	whole    the unit of a duration that is a whole number of it; a bare number counts in it
type serveOptions struct {
	Listen          []address     `name:"listen" default:"127.0.0.1:5672" want:"HOST:PORT" help:"Address to accept AMQP clients on. May be given several times."`
	HTTP            optionalAddr  `name:"http" default:"127.0.0.1:15672" want:"HOST:PORT or off" help:"Address of the HTTP listener: health, metrics and the management API. off turns it off."`
	Data            string        `name:"data" default:"./data" want:"a folder" help:"Folder that holds the broker's files. It is created when missing and locked while the broker runs."`
	Config          string        `name:"config" default:"" only:"flag,env" want:"a file" help:"Configuration file (TOML). Its keys are the flags' names."`
	CheckConfig     bool          `name:"check-config" default:"false" only:"flag" want:"true or false" help:"Read and check all settings, print them, and exit without serving."`
	Cores           coreList      `name:"cores" default:"auto" want:"auto, or processor numbers such as 0-3,6" help:"Processors to run event loops on, one loop each. auto takes all that the process may use."`
	Pin             bool          `name:"pin" default:"true" want:"true or false" help:"Tie each event loop to its processor."`
	IO              string        `name:"io" default:"auto" enum:"auto,uring,epoll" help:"Kernel interface for the network. auto takes io_uring and falls back to epoll where the kernel or a sandbox refuses it."`
	Spin            time.Duration `name:"spin" default:"50us" min:"0s" max:"10ms" want:"a duration such as 50us" help:"Longest time that an idle event loop polls before it sleeps. Not used when there are as many loops as processors."`
	ChannelMax      int           `name:"channel-max" default:"2047" min:"1" max:"65535" help:"Most channels per connection."`
	FrameMax        int           `name:"frame-max" default:"131072" min:"4096" max:"16777216" help:"Largest frame in bytes, offered to clients."`
	Heartbeat       time.Duration `name:"heartbeat" default:"60s" min:"0s" max:"65535s" whole:"s" want:"whole seconds such as 60s" help:"Heartbeat interval offered to clients, in whole seconds. 0s turns heartbeats off."`
	MessageSizeMax  byteSize      `name:"message-size-max" default:"128MiB" min:"1KiB" max:"512MiB" want:"bytes, or a size such as 128MiB or 100MB" help:"Largest message body in bytes."`
	ConsumerTimeout time.Duration `name:"consumer-timeout" default:"30m" min:"0s" max:"87600h" whole:"ms" want:"a duration in whole milliseconds such as 30m" help:"Longest time that a consumer may hold a delivery without acknowledging it; then its channel is closed and what it held goes back to the queues. Looked at once a minute, or at a tenth of the time when that is shorter. 0s is for ever. A queue's or consumer's x-consumer-timeout and policies go before it. Re-read on SIGHUP."`
	LoadDefinitions string        `name:"load-definitions" default:"" want:"a file" help:"File of definitions (JSON, in RabbitMQ's form) to import at every start, before clients are let in: virtual hosts, policies, limits, parameters, exchanges, queues and bindings. What exists already stays as it is; settings of virtual hosts, policies, limits and parameters are replaced. When anything in it is wrong, nothing is imported and the broker does not start."`
	Sync            string        `name:"sync" default:"always" enum:"always,interval,off" help:"When a persistent message counts as safe and is confirmed. always: after the sync to disk that covers it; nothing confirmed is lost, in a power cut neither. interval: when the kernel has it, with a sync every sync-interval; a power cut or a crash of the system loses what was confirmed since the last sync, a crash of the broker loses nothing. off: as interval, without syncs; a power cut or a crash of the system may lose everything that the kernel had not written by itself."`
	SyncInterval    time.Duration `name:"sync-interval" default:"100ms" min:"1ms" max:"60s" want:"a duration such as 100ms" help:"Time between two syncs with sync = interval: what a power cut may lose of confirmed messages."`
	MemoryLimit     memoryLimit   `name:"memory-limit" default:"60%" want:"a size such as 4GiB, or a share of the memory such as 60%" help:"Resident memory of the process that is aimed at: a size of at least 64MiB, or a share of what the machine or the control group has. Bodies of messages leave memory before it is reached; publishers are blocked when it is exceeded. Re-read on SIGHUP."`
	DiskFreeLimit   byteSize      `name:"disk-free-limit" default:"1GiB" want:"bytes, or a size such as 1GiB or 500MB" help:"Room on the disk of the data folder under which publishers are blocked, so that acknowledgements and other programs still find some. 0 turns it off. Re-read on SIGHUP."`
	WALSegmentSize  byteSize      `name:"wal-segment-size" default:"64MiB" min:"32KiB" max:"1GiB" multiple:"4KiB" want:"bytes, or a size such as 64MiB, a multiple of 4KiB" help:"Size of one file of the message log. The first files of a log are smaller; it grows into this size."`
	WALCompress     string        `name:"wal-compress" default:"none" enum:"none,s2,zstd" help:"Compression of message bodies in the log, from 4 KiB on. It costs processor time and saves disk."`
	LogLevel        string        `name:"log-level" default:"info" enum:"debug,info,warn,error" help:"Least severe level that is logged. Re-read on SIGHUP."`
	LogFormat       string        `name:"log-format" default:"text" enum:"text,json" help:"Form of the log on standard error."`

	sources map[string]string // setting name -> where its value came from, for --check-config
}
