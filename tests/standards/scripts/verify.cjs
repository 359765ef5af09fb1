// Verify each message file named on standard input with mailauth: prints {file: result} as JSON.
const fs = require("node:fs");
const { dkimVerify } = require("mailauth/lib/dkim/verify");

async function main() {
    const { record, files } = JSON.parse(fs.readFileSync(0, "utf8"));
    const resolver = async (name, type) => {
        if (type !== "TXT" || name !== record.name) {
            throw Object.assign(new Error("no such record"), { code: "ENOTFOUND" });
        }
        return [[record.value]];
    };
    const found = {};
    for (const file of files) {
        const { results } = await dkimVerify(fs.readFileSync(file), { resolver });
        found[file] = results.map(({ status, modulusLength, signingHeaders, format }) => ({
            result: status.result,
            underSized: status.underSized ?? null,
            modulusLength,
            format,
            signed: signingHeaders?.keys ?? null,
        }));
    }
    console.log(JSON.stringify(found));
}

main();
