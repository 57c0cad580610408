# Requests of a Ruby script with the gem gitlab.
require "gitlab"
require "json"

given = JSON.parse(ARGV[0])
client = Gitlab.client(endpoint: "#{given["host"]}/api/v4", private_token: given["token"])
group = given["group"]

taken =
  begin
    client.create_group("again", group)
    nil
  rescue Gitlab::Error::BadRequest => e
    e.message
  end

told = {
  user: client.user.username,
  groups: client.groups(min_access_level: 5, statistics: true, order_by: "similarity").map(&:full_path),
  projects: client.projects(
    membership: true, statistics: true, with_issues_enabled: true, last_activity_after: "2020-01-01T00:00:00Z"
  ).map(&:path),
  group: client.group(group, with_projects: false).full_path,
  in_group: client.group_projects(group, include_subgroups: true, with_shared: true, topic: "").map(&:path),
  project: client.project("#{group}/shop").last_activity_at.to_s,
  members: client.group_members(group, show_seat_info: true, active: true).length,
  users: client.users(username: given["username"], exclude_internal: true, external: false).length,
  environments: client.environments("#{group}/shop", states: "stopped").length,
  taken: taken,
}
puts JSON.generate(told)
