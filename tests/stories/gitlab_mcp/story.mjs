// Requests projects from the server, as the client of an assistant does.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { host, token, search } = JSON.parse(process.argv[2]);
const transport = new StdioClientTransport({
  command: process.execPath,
  args: ["node_modules/@modelcontextprotocol/server-gitlab/dist/index.js"],
  env: { GITLAB_PERSONAL_ACCESS_TOKEN: token, GITLAB_API_URL: `${host}/api/v4` },
});
const client = new Client({ name: "story", version: "1.0.0" }, { capabilities: {} });
await client.connect(transport);

async function call(name, given) {
  const { content, isError } = await client.callTool({ name, arguments: given });
  if (isError) throw new Error(content[0].text);
  return JSON.parse(content[0].text);
}

const found = await call("search_repositories", { search });
console.log(JSON.stringify({ count: found.count, paths: found.items.map((each) => each.path_with_namespace) }));
await client.close();
