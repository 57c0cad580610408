"""All known tools by the format of their bodies.

If several tools recognize a body, the first one is used.
"""

from domain.alerts.tools import (
    alertmanager,
    amazon_cloudwatch,
    amazon_sns,
    apprise,
    azure_monitor,
    collectd,
    datadog,
    datadog_default_payload,
    google_cloud_monitoring,
    grafana,
    grafana_legacy_alerting,
    healthchecks,
    monit,
    nagios,
    pagerduty_events,
    pingdom,
    prometheus,
    sentry_issue_alerts,
    sentry_issues,
    sentry_metric_alerts,
    sentry_webhooks_plugin,
    statuspage,
    statuspage_components,
    uptime_kuma,
    zabbix,
)
from domain.alerts.tools.base import MonitoringTool

#: Tools that use the format of Alertmanager.
PROMETHEUS_TOOLS: tuple[MonitoringTool, ...] = (grafana.TOOL, alertmanager.TOOL, prometheus.TOOL)
#: Tools that post JSON to an HTTP endpoint.
HTTP_TOOLS: tuple[MonitoringTool, ...] = (
    pagerduty_events.TOOL,
    grafana_legacy_alerting.TOOL,
    uptime_kuma.TOOL,
    zabbix.TOOL,
    sentry_issue_alerts.TOOL,
    sentry_issues.TOOL,
    sentry_metric_alerts.TOOL,
    sentry_webhooks_plugin.TOOL,
    amazon_cloudwatch.TOOL,
    amazon_sns.TOOL,
    datadog.TOOL,
    datadog_default_payload.TOOL,
    healthchecks.TOOL,
    nagios.TOOL,
    monit.TOOL,
    collectd.TOOL,
    apprise.TOOL,
    statuspage.TOOL,
    statuspage_components.TOOL,
    pingdom.TOOL,
    azure_monitor.TOOL,
    google_cloud_monitoring.TOOL,
)
