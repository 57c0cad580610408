"""Configuration snippets for senders, with the URL and the key filled in."""

import shlex
from dataclasses import dataclass
from urllib.parse import quote

import orjson


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """A text to paste. Its title names the program and, after a colon, where to paste the text."""

    title: str
    language: str
    text: str

    @property
    def program(self) -> str:
        """Name of the program that the snippet is for."""
        return self.title.partition(":")[0]


def build_general_snippets(url: str, key: str, body: str) -> tuple[Snippet, ...]:
    """Return a curl command and a Python script that post a JSON body."""
    curl = Snippet(
        title="curl: one alert on the command line",
        language="sh",
        text=(
            f"curl {shlex.quote(url)} \\\n"
            f"  --header 'Authorization: Bearer {key}' \\\n"
            "  --header 'Content-Type: application/json' \\\n"
            f"  --data {shlex.quote(body)}\n"
        ),
    )
    # JSON contains no three quotes in succession, so it is also the content of a raw string.
    python = Snippet(
        title="Python: standard library only",
        language="python",
        text=(
            "import urllib.request\n\n"
            f'alert = r"""{body}"""\n'
            "request = urllib.request.Request(\n"
            f'    "{url}",\n'
            "    data=alert.encode(),\n"
            "    headers={\n"
            f'        "Authorization": "Bearer {key}",\n'
            '        "Content-Type": "application/json",\n'
            "    },\n"
            ")\n"
            "print(urllib.request.urlopen(request).read().decode())\n"
        ),
    )
    return (curl, python)


def build_sender_snippets(url: str, key: str) -> tuple[Snippet, ...]:
    """Return the snippets for senders that use a script or a template, sorted by name."""
    return (
        _build_apprise_snippet(url, key),
        _build_collectd_snippet(url, key),
        *_build_healthchecks_snippets(url, key),
        _build_monit_snippet(url, key),
        *_build_uptime_kuma_snippets(key),
        _build_zabbix_snippet(url, key),
    )


def _build_apprise_snippet(url: str, key: str) -> Snippet:
    scheme, _, rest = url.partition("://")
    target = f"{'jsons' if scheme == 'https' else 'json'}://{rest}"
    # Apprise turns options with a plus sign into headers. Options with a colon rename or add
    # members of the body.
    options = f"+Authorization=Bearer%20{quote(key, safe='')}&:message=description&:severity=high"
    return Snippet(
        title="Apprise: URL for the configuration file or the command line",
        language="sh",
        text=f"apprise --title 'Disk almost full' --body '2% left' \\\n  '{target}?{options}'\n",
    )


def _build_collectd_snippet(url: str, key: str) -> Snippet:
    return Snippet(
        title="collectd: write_http in collectd.conf, for notifications of the threshold plugin",
        language="apache",
        text=(
            "LoadPlugin write_http\n"
            "<Plugin write_http>\n"
            '  <Node "gatebell">\n'
            f'    URL "{url}"\n'
            f'    Header "Authorization: Bearer {key}"\n'
            '    Format "JSON"\n'
            "    Metrics false\n"
            "    Notifications true\n"
            "  </Node>\n"
            "</Plugin>\n"
        ),
    )


def _build_healthchecks_snippets(url: str, key: str) -> tuple[Snippet, ...]:
    down = {
        "title": "$NAME is down",
        "severity": "high",
        "service": "$NAME",
        "monitoring_tool": "Healthchecks",
        "fingerprint": "healthchecks/$CODE",
    }
    up = {**down, "title": "$NAME is up", "end_time": "$NOW"}
    headers = f"Authorization: Bearer {key}\nContent-Type: application/json\n"
    return (
        Snippet(
            title="Healthchecks: webhook URL, with the method POST for down and up",
            language="text",
            text=f"{url}\n",
        ),
        Snippet(
            title="Healthchecks: request headers for down and up",
            language="text",
            text=headers,
        ),
        Snippet(
            title="Healthchecks: request body for down",
            language="json",
            text=_format_indented(down),
        ),
        Snippet(
            title="Healthchecks: request body for up", language="json", text=_format_indented(up)
        ),
    )


#: Script with the placeholders @URL@ and @KEY@.
_MONIT_SCRIPT = r"""#!/bin/sh
# Save as /usr/local/bin/gatebell-monit, make it executable, and use it in monitrc, for example:
#   check filesystem root with path /
#     if space usage > 90% then exec "/usr/local/bin/gatebell-monit"
#       else if succeeded then exec "/usr/local/bin/gatebell-monit resolved"
text() { printf '%s' "$1" | tr '\n\r\t' '   ' | sed 's/\\/\\\\/g; s/"/\\"/g'; }
end=''
if [ "$1" = resolved ]; then end=", \"end_time\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\""; fi
curl --silent --show-error --fail '@URL@' \
  --header 'Authorization: Bearer @KEY@' \
  --header 'Content-Type: application/json' \
  --data @- <<END
{
  "title": "$(text "$MONIT_SERVICE: $MONIT_EVENT")",
  "description": "$(text "$MONIT_DESCRIPTION")",
  "severity": "high",
  "service": "$(text "$MONIT_SERVICE")",
  "hosts": "$(text "$MONIT_HOST")",
  "monitoring_tool": "Monit",
  "fingerprint": "$(text "monit/$MONIT_HOST/$MONIT_SERVICE")"$end
}
END
"""


def _build_monit_snippet(url: str, key: str) -> Snippet:
    return Snippet(
        title="Monit: a script for exec in monitrc",
        language="sh",
        text=_MONIT_SCRIPT.replace("@URL@", url).replace("@KEY@", key),
    )


def _build_uptime_kuma_snippets(key: str) -> tuple[Snippet, ...]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return (
        Snippet(
            title="Uptime Kuma: additional headers for a webhook to the URL above",
            language="json",
            text=_format_indented(headers),
        ),
        Snippet(
            title="Uptime Kuma: custom request body",
            language="liquid",
            text=(
                "{\n"
                '  "title": {{ msg | json }},\n'
                '  "service": {{ name | json }},\n'
                '  "severity": "critical",\n'
                '  "monitoring_tool": "Uptime Kuma",\n'
                '  "fingerprint": "uptime-kuma/{{ monitorJSON.id }}"'
                "{% if heartbeatJSON.status == 1 %},\n"
                '  "end_time": "{{ heartbeatJSON.time }}"{% endif %}\n'
                "}\n"
            ),
        ),
    )


_ZABBIX_SCRIPT = """\
var params = JSON.parse(value);
var severities = ['unknown', 'info', 'low', 'medium', 'high', 'critical'];
var alert = {
  title: params.name,
  description: params.message,
  severity: severities[params.severity] || 'unknown',
  hosts: params.host,
  monitoring_tool: 'Zabbix',
  fingerprint: 'zabbix/' + params.id
};
if (params.value === '0') alert.end_time = new Date().toISOString();
var request = new HttpRequest();
request.addHeader('Content-Type: application/json');
request.addHeader('Authorization: Bearer ' + params.key);
var answer = request.post(params.url, JSON.stringify(alert));
if (request.getStatus() !== 200) throw 'HTTP ' + request.getStatus() + ': ' + answer;
return 'OK';
"""
#: Zabbix macros, by the names of the script's parameters.
_ZABBIX_PARAMETERS = {
    "host": "{HOST.NAME}",
    "id": "{EVENT.ID}",
    "message": "{ALERT.MESSAGE}",
    "name": "{EVENT.NAME}",
    "severity": "{EVENT.NSEVERITY}",
    "value": "{EVENT.VALUE}",
}


def _build_zabbix_snippet(url: str, key: str) -> Snippet:
    parameters = {**_ZABBIX_PARAMETERS, "key": key, "url": url}
    rows = "".join(
        f"        - name: {name}\n          value: '{value}'\n"
        for name, value in sorted(parameters.items())
    )
    script = "".join(f"        {line}\n" for line in _ZABBIX_SCRIPT.splitlines())
    templates = "".join(
        "        - event_source: TRIGGERS\n"
        f"          operation_mode: {mode}\n"
        f"          subject: '{subject}: {{EVENT.NAME}}'\n"
        "          message: '{EVENT.OPDATA}'\n"
        for mode, subject in (("PROBLEM", "Problem"), ("RECOVERY", "Resolved"))
    )
    return Snippet(
        title="Zabbix: a media type to import, for 6.0 and later",
        language="yaml",
        text=(
            "zabbix_export:\n"
            "  version: '6.0'\n"
            "  media_types:\n"
            "    - name: Gatebell\n"
            "      type: WEBHOOK\n"
            f"      parameters:\n{rows}"
            f"      script: |\n{script}"
            f"      message_templates:\n{templates}"
        ),
    )


def _format_indented(body: object) -> str:
    return f"{orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()}\n"
