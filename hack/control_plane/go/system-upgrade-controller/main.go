// Command system-upgrade-controller runs the controller of the module of that name. The module's own program has no
// option for its limit of 5 requests per second, and reports nowhere when it is ready.
//
// Arguments: kubeconfig, namespace, name. The SYSTEM_UPGRADE_JOB_* variables set the defaults of Jobs.
package main

import (
	"os"
	"time"

	"github.com/rancher/system-upgrade-controller/pkg/upgrade"
	"github.com/rancher/wrangler/v3/pkg/signals"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// The values of kube-controller-manager's flags.
	qps   = 1000
	burst = 2000
	// The values of the module's own program.
	threads = 2
	resync  = 2 * time.Hour
)

func main() {
	kubeconfig, namespace, name := os.Args[1], os.Args[2], os.Args[3]
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		logrus.Fatal(err)
	}
	config.QPS, config.Burst = qps, burst
	controller, err := upgrade.NewController(config, namespace, name, "", false, resync)
	if err != nil {
		logrus.Fatal(err)
	}
	ctx := signals.SetupSignalContext()
	if err := controller.Start(ctx, threads); err != nil {
		logrus.Fatal(err)
	}
	if err := os.WriteFile("system-upgrade-controller.ready", nil, 0o600); err != nil {
		logrus.Fatal(err)
	}
	<-ctx.Done()
}
