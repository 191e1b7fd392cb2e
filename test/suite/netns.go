package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// namespace is a network namespace that holds nothing but a loopback interface.
type namespace struct{ name string }

// newNamespace makes a namespace with its loopback interface up. The caller removes it.
func newNamespace() (namespace, error) {
	if os.Geteuid() != 0 {
		return namespace{}, errors.New("a network namespace is needed (the suite's recovery tests want ports 5672 and 15672 of " +
			"localhost): run this as root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return namespace{}, errors.New("the ip command is needed to make a network namespace: install iproute2")
	}
	n := namespace{fmt.Sprintf("ringmq-suite-%d", os.Getpid())}
	if err := run("ip", "netns", "add", n.name); err != nil {
		return namespace{}, err
	}
	if err := run("ip", "-n", n.name, "link", "set", "lo", "up"); err != nil {
		n.remove()
		return namespace{}, err
	}
	return n, nil
}

// prefix is the command line that runs a program inside. ip replaces itself by the program, so the process id stays.
func (n namespace) prefix() []string { return []string{"ip", "netns", "exec", n.name} }

func (n namespace) remove() {
	if err := run("ip", "netns", "delete", n.name); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
}

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
