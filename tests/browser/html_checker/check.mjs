// Checks the files of a folder with html-validate, and prints the problems as JSON.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HtmlValidate, StaticConfigLoader } from "html-validate";

const { folder } = JSON.parse(process.argv[2]);
const checker = new HtmlValidate(
  new StaticConfigLoader({ root: true, extends: ["html-validate:standard"] }),
);
const problems = [];
for (const name of readdirSync(folder).sort()) {
  const report = await checker.validateString(readFileSync(join(folder, name), "utf-8"));
  for (const result of report.results) {
    for (const { ruleId, message, line, selector } of result.messages) {
      problems.push({ name, ruleId, message, line, selector });
    }
  }
}
console.log(JSON.stringify({ problems }));
