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
//	whole    the unit of a duration that is a whole number of it; a bare number counts in it
type serveOptions struct {
	Listen         []address     `name:"listen" default:"127.0.0.1:5672" want:"HOST:PORT" help:"Address to accept AMQP clients on. May be given several times."`
	HTTP           optionalAddr  `name:"http" default:"127.0.0.1:15672" want:"HOST:PORT or off" help:"Address of the HTTP listener: health, metrics and the management API. off turns it off."`
	Data           string        `name:"data" default:"./data" want:"a folder" help:"Folder that holds the broker's files. It is created when missing and locked while the broker runs."`
	Config         string        `name:"config" default:"" only:"flag,env" want:"a file" help:"Configuration file (TOML). Its keys are the flags' names."`
	CheckConfig    bool          `name:"check-config" default:"false" only:"flag" want:"true or false" help:"Read and check all settings, print them, and exit without serving."`
	Cores          coreList      `name:"cores" default:"auto" want:"auto, or processor numbers such as 0-3,6" help:"Processors to run event loops on, one loop each. auto takes all that the process may use."`
	Pin            bool          `name:"pin" default:"true" want:"true or false" help:"Tie each event loop to its processor."`
	IO             string        `name:"io" default:"auto" enum:"auto,uring,epoll" help:"Kernel interface for the network. auto takes io_uring and falls back to epoll where the kernel or a sandbox refuses it."`
	Spin           time.Duration `name:"spin" default:"50us" min:"0s" max:"10ms" want:"a duration such as 50us" help:"Longest time that an idle event loop polls before it sleeps. Not used when there are as many loops as processors."`
	ChannelMax     int           `name:"channel-max" default:"2047" min:"1" max:"65535" help:"Most channels per connection."`
	FrameMax       int           `name:"frame-max" default:"131072" min:"4096" max:"16777216" help:"Largest frame in bytes, offered to clients."`
	Heartbeat      time.Duration `name:"heartbeat" default:"60s" min:"0s" max:"65535s" whole:"s" want:"whole seconds such as 60s" help:"Heartbeat interval offered to clients, in whole seconds. 0s turns heartbeats off."`
	MessageSizeMax byteSize      `name:"message-size-max" default:"128MiB" min:"1KiB" max:"512MiB" want:"bytes, or a size such as 128MiB or 100MB" help:"Largest message body in bytes."`
	LogLevel       string        `name:"log-level" default:"info" enum:"debug,info,warn,error" help:"Least severe level that is logged. Re-read from the configuration file on SIGHUP."`
	LogFormat      string        `name:"log-format" default:"text" enum:"text,json" help:"Form of the log on standard error."`

	sources map[string]string // setting name -> where its value came from, for --check-config
}
