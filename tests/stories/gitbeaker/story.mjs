// A script with gitbeaker that prints the result of each step.

import { Gitlab } from "@gitbeaker/rest";

const { host, token, name, member } = JSON.parse(process.argv[2]);
const api = new Gitlab({ host, token });
const sha = "0123456789abcdef0123456789abcdef01234567";
const done = {};

done.user = (await api.Users.showCurrentUser()).username;
done.version = (await api.Metadata.show()).version;
const group = await api.Groups.create(name, name);
const project = await api.Projects.create({
  name: "shop",
  namespaceId: group.id,
  visibility: "private",
});
await api.Projects.create({ name: "blog", namespaceId: group.id });
done.path = project.path_with_namespace;
done.member = (await api.ProjectMembers.add(project.id, 30, { userId: member })).access_level;
done.members = (await api.ProjectMembers.all(project.id, { includeInherited: true })).length;
await api.Environments.create(project.id, "production", { externalUrl: "https://shop.example" });
const deployment = await api.Deployments.create(project.id, "production", sha, "main", false, {
  status: "running",
});
done.deployment = (await api.Deployments.edit(project.id, deployment.id, "success")).status;
done.status = (await api.Commits.editStatus(project.id, sha, "success", { name: "build" })).status;
await api.ProjectReleases.create(project.id, { tagName: "v1.0", description: "First" });
await api.ReleaseLinks.create(project.id, "v1.0", "shop.tgz", "https://files.example/shop.tgz");
done.links = (await api.ProjectReleases.show(project.id, "v1.0")).assets.links.length;
const expiry = new Date(Date.now() + 30 * 86400e3).toISOString().slice(0, 10);
const made = await api.ProjectAccessTokens.create(project.id, "ci", ["read_api"], expiry);
done.bot = (await new Gitlab({ host, token: made.token }).Projects.show(project.id)).id === project.id;
// Page by page, with page numbers and without.
const wanted = { membership: true, perPage: 1 };
done.numbered = (await api.Projects.all({ ...wanted, pagination: "offset" })).length;
done.keyset = (await api.Projects.all({ ...wanted, pagination: "keyset", orderBy: "id" })).length;
done.alerts = (await api.requester.get(`projects/${project.id}/alert_management_alerts`)).body;
try {
  await api.Projects.show("nobody/nothing");
} catch (error) {
  done.missing = error.cause.response.status;
}
await api.Projects.archive(project.id);
try {
  await api.Environments.create(project.id, "staging");
} catch (error) {
  done.archived = error.cause.response.status;
}
await api.Groups.remove(group.id);
console.log(JSON.stringify(done));
