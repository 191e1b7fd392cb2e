package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"
)

// ctlWait bounds one question to the broker.
const ctlWait = 30 * time.Second

// answerBytesMax bounds an answer: a listing of a million queues fits.
const answerBytesMax = 1 << 30

// client speaks to the socket of the data folder.
func (c *ctlCall) client(wait time.Duration) *http.Client {
	path := filepath.Join(c.data, controlName)
	return &http.Client{Timeout: wait, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			short, done, err := shortPath(path)
			if err != nil {
				return nil, err
			}
			defer done()
			return new(net.Dialer).DialContext(ctx, "unix", short)
		},
	}}
}

// get asks the broker of the data folder for one page. Its error is the line that the operator reads.
func (c *ctlCall) get(page string) ([]byte, error) {
	resp, err := c.client(ctlWait).Get("http://ringmq" + page)
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return nil, fmt.Errorf("the broker's answer breaks off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the broker answers %s: %s", resp.Status, body)
	}
	return body, nil
}

// unreachable says why there is no answer and what to do.
func (c *ctlCall) unreachable(err error) error {
	path := filepath.Join(c.data, controlName)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("no broker runs on the data folder %s; name the broker's folder with --data", c.data)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be opened; run it as the user of the broker, or as root", path)
	}
	return fmt.Errorf("the broker does not answer: %w", err)
}

// getInto asks for a page and reads its JSON into v. With --json it prints the page instead and reports
// that nothing is left to do.
func (c *ctlCall) getInto(page string, v any) (code int, done bool) {
	body, err := c.get(page)
	if err != nil {
		return c.fail("%v", err), true
	}
	if c.json {
		fmt.Fprintf(c.stdout, "%s\n", body)
		return exitOK, true
	}
	if err := json.Unmarshal(body, v); err != nil {
		return c.fail("the broker's answer cannot be read: %v", err), true
	}
	return exitOK, false
}
