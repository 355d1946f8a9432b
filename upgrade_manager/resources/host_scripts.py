"""Shell scripts that change a node's host before the upgrade goes on, and undo the change.

pipeline/host_changes.py names them in its table; Plans run them by the host's own shell.

Each script reads first, and writes nothing where its work is done. A repetition mends what a kill at any point leaves.
The files of the agent are those that pre-drain removes (toolkit/host/system_agent.py).
"""

from __future__ import annotations

AGENT = "rancher-system-agent.service"
#: Lost at a reboot, like all of /run.
AGENT_FOLDER = f"/run/systemd/system/{AGENT}.d"
#: The files that hold the agent back; other files in that folder belong to the user.
AGENT_OVERRIDE, AGENT_ENVIRONMENT = f"{AGENT_FOLDER}/override.conf", f"{AGENT_FOLDER}/10-harvester-upgrade.env"
#: Exists from the first change of these until the agent has restarted. systemd reads only *.conf.
AGENT_MARKER = f"{AGENT_FOLDER}/harvester-upgrade-restores"
SKIP_FILE = "/var/lib/rancher/rke2/server/manifests/rke2-multus.yaml.skip"
#: The text of a file that an upgrade has placed: a user's file of that name has another, and stays.
SKIP_MARK = "harvester-upgrade-manager"

_AGENT = f"""set -eu
drop_ins={AGENT_FOLDER}
conf={AGENT_OVERRIDE}
env={AGENT_ENVIRONMENT}
restart={AGENT_MARKER}
restart_agent() {{
  systemctl daemon-reload
  systemctl restart {AGENT}
  state=$(systemctl show --property=ActiveState --value {AGENT})
  [ "$state" = active ] || {{ echo "{AGENT} is $state after its restart"; exit 1; }}
  rm -f "$restart"
}}
"""

HOLD_AGENT = f"""{_AGENT}conf_text='[Service]
EnvironmentFile=-{AGENT_ENVIRONMENT}'
env_text=INSTALL_RKE2_SKIP_ENABLE=true
has() {{ [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }}
if [ ! -e "$restart" ] && has "$conf" "$conf_text" && has "$env" "$env_text"; then exit 0; fi
mkdir -p "$drop_ins"
: >"$restart"
echo "$env_text" >"$env"
echo "$conf_text" >"$conf"
restart_agent
"""

RELEASE_AGENT = f"""{_AGENT}if [ ! -e "$conf" ] && [ ! -e "$env" ] && [ ! -e "$restart" ]; then exit 0; fi
: >"$restart"
rm -f "$conf" "$env"
restart_agent
rmdir "$drop_ins" 2>/dev/null || true
"""

SKIP_MULTUS = f"""set -eu
file={SKIP_FILE}
if [ ! -d "${{file%/*}}" ] || [ -e "$file" ]; then exit 0; fi
echo {SKIP_MARK} >"$file.new"
mv "$file.new" "$file"
"""

UNSKIP_MULTUS = f"""set -eu
file={SKIP_FILE}
rm -f "$file.new"
if [ "$(cat "$file" 2>/dev/null)" = {SKIP_MARK} ]; then rm -f "$file"; fi
"""
