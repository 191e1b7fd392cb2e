package main

import (
	"fmt"
	"os"
	"strings"

	"ringmq/admin/definitions"
	"ringmq/engine/session091"
)

// readDefinitions reads the file of --load-definitions and checks its form; nil without one.
// Its error is the line that the operator reads, and names the file.
func readDefinitions(o *serveOptions) (*definitions.File, error) {
	if o.LoadDefinitions == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.LoadDefinitions)
	if err != nil {
		return nil, fmt.Errorf("--load-definitions: %w", err)
	}
	f, err := definitions.Parse(data, "", session091.JSONArgs{})
	if err != nil {
		return nil, fmt.Errorf("--load-definitions %s: %w", o.LoadDefinitions, err)
	}
	return f, nil
}

// loadDefinitions imports the file. The storage is open, and nobody is served yet.
func (b *broker) loadDefinitions(f *definitions.File) error {
	if f == nil {
		return nil
	}
	if err := f.Import(b.server.Broker); err != nil {
		return fmt.Errorf("--load-definitions %s: %w", b.o.LoadDefinitions, err)
	}
	n := f.Counts()
	b.log.Info("definitions imported", "file", b.o.LoadDefinitions, "held", n.String())
	if len(n.Unsupported) > 0 {
		b.log.Warn("a part of the definitions is not imported; accounts come in a later version",
			"file", b.o.LoadDefinitions, "keys", strings.Join(n.Unsupported, ","))
	}
	return nil
}
