// Verify the messages on standard input with mailauth in a zone: prints the verdicts as JSON.
const fs = require("node:fs");
const { authenticate } = require("mailauth");

async function main() {
    const { zone, cases } = JSON.parse(fs.readFileSync(0, "utf8"));
    const resolver = async (name, type) => {
        const records = (zone[name.toLowerCase()] || {})[type];
        if (records === "SERVFAIL") {
            throw Object.assign(new Error(name), { code: "ESERVFAIL" });
        }
        if (!records) {
            throw Object.assign(new Error(name), { code: zone[name.toLowerCase()] ? "ENODATA" : "ENOTFOUND" });
        }
        if (type === "MX") {
            return records.map(([priority, exchange]) => ({ priority, exchange }));
        }
        return type === "TXT" ? records.map((text) => [text]) : records;
    };
    const found = [];
    for (const one of cases) {
        const result = await authenticate(Buffer.from(one.source, "base64"), {
            ip: one.ip, helo: one.helo, sender: one.mailFrom, mta: "mx.example", resolver, disableBimi: true,
        });
        found.push({
            spf: result.spf ? result.spf.status.result : "none",
            dkim: result.dkim.results.map(({ status }) => status.result),
            dmarc: result.dmarc ? result.dmarc.status.result : "none",
            policy: result.dmarc && result.dmarc.policy ? result.dmarc.policy : null,
            arc: result.arc && result.arc.status ? result.arc.status.result : "none",
        });
    }
    console.log(JSON.stringify(found));
}

main();
