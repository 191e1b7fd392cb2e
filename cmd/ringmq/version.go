package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the product's version; CHANGELOG.md says what is in it.
const version = "0.1.0-dev"

// compatVersion is the RabbitMQ version that clients are shown in the server properties.
const compatVersion = "3.13.7"

// versionLine is what "ringmq version" prints: enough to say which build this is.
func versionLine() string {
	line := fmt.Sprintf("ringmq %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return line
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			line += " " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			line += " (modified)"
		}
	}
	return line
}
