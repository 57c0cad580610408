// A script of 2022 with gitbeaker that rehearses a release and prints the result of each step.

import { Gitlab } from "@gitbeaker/rest";

const { host, token, project, release } = JSON.parse(process.argv[2]);
const api = new Gitlab({ host, token });
for (const resource of Object.values(api)) {
  if (resource?.headers) resource.headers["Platform-Release"] = release;
}
const done = {};

async function attempt(name, step) {
  try {
    await step();
    done[name] = "works";
  } catch (error) {
    done[name] = error.cause?.response?.status ?? String(error);
  }
}

await attempt("user", () => api.Users.showCurrentUser());
await attempt("usersByPage", () => api.Users.all({ page: 2, perPage: 1, maxPages: 1 }));
await attempt("usersByKey", () =>
  api.Users.all({ pagination: "keyset", orderBy: "id", perPage: 1, maxPages: 1 }),
);
await attempt("project", () => api.Projects.show(project));
await attempt("oneAccessLevel", () =>
  api.Projects.edit(project, { operationsAccessLevel: "enabled" }),
);
await attempt("deploymentsByChange", () =>
  api.Deployments.all(project, { updatedAfter: "2027-01-01T00:00:00Z" }),
);
await attempt("environmentsLikePr", () => api.Environments.all(project, { search: "pr" }));
const tag = `v${Date.now()}`;
await api.ProjectReleases.create(project, { tagName: tag, description: "" });
const link = await api.ReleaseLinks.create(project, tag, "a", `https://files.example/${tag}`);
done.linksAreExternal = link.external === true;
console.log(JSON.stringify(done));
