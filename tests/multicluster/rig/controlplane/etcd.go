package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd serves one etcd member until SIGTERM or SIGINT. It skips fsync:
// the rig's data need not survive the machine, only the processes that use it.
func runEtcd(args []string) int {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	dataDir := flags.String("data-dir", "", "folder for the member's data")
	client := flags.String("listen-client-url", "", "URL to serve clients on")
	peer := flags.String("listen-peer-url", "", "URL to serve peers on")
	_ = flags.Parse(args)

	config := embed.NewConfig()
	config.Dir = *dataDir
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"
	config.QuotaBackendBytes = 4 << 30
	config.AutoCompactionMode = "periodic"
	config.AutoCompactionRetention = "5m"
	clientURL, err := url.Parse(*client)
	if err != nil {
		return fail("listen-client-url", err)
	}
	peerURL, err := url.Parse(*peer)
	if err != nil {
		return fail("listen-peer-url", err)
	}
	config.ListenClientUrls = []url.URL{*clientURL}
	config.AdvertiseClientUrls = []url.URL{*clientURL}
	config.ListenPeerUrls = []url.URL{*peerURL}
	config.AdvertisePeerUrls = []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fail("start", err)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(60 * time.Second):
		return fail("start", fmt.Errorf("not ready after 60 s"))
	}

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-stop:
		return 0
	case err := <-etcd.Err():
		return fail("serve", err)
	}
}

func fail(what string, err error) int {
	fmt.Fprintf(os.Stderr, "etcd: %s: %v\n", what, err)
	return 1
}
