// Read each address list on standard input with mailparser and postal-mime: prints [[address, ...], ...] of each as JSON.
const fs = require("node:fs");
const { simpleParser } = require("mailparser");
const { default: PostalMime } = require("postal-mime");

const flat = (found) => (found || []).flatMap((one) => (one.group ? one.group : [one])).map((one) => one.address || "");

async function main() {
    const found = { mailparser: [], "postal-mime": [] };
    for (const text of JSON.parse(fs.readFileSync(0, "utf8"))) {
        const source = `Cc: ${text}\r\n\r\n`;
        const { cc } = await simpleParser(source);
        found.mailparser.push(flat(cc && cc.value));
        found["postal-mime"].push(flat((await PostalMime.parse(source)).cc));
    }
    console.log(JSON.stringify(found));
}

main();
