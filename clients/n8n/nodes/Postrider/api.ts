import type {
	IDataObject,
	IExecuteFunctions,
	IHookFunctions,
	IHttpRequestMethods,
	ILoadOptionsFunctions,
	JsonObject,
} from 'n8n-workflow';
import { NodeApiError } from 'n8n-workflow';

type Context = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions;

export interface Call {
	method: IHttpRequestMethods;
	/** After /v1. Ids in it are escaped by `segment`. */
	path: string;
	query?: IDataObject;
	body?: IDataObject;
	idempotencyKey?: string;
	itemIndex?: number;
}

const PAGE = 100;

/** Call the API as the credential says. Throws NodeApiError with the code, the sentence and the fields of the refusal. */
export async function call<T>(context: Context, { method, path, query, body, idempotencyKey, itemIndex }: Call): Promise<T> {
	const { baseUrl } = await context.getCredentials<{ baseUrl: string }>('postriderApi');
	const answer = (await context.helpers.httpRequestWithAuthentication.call(context, 'postriderApi', {
		method,
		url: `${baseUrl.replace(/\/+$/, '')}/v1${path}`,
		qs: query,
		body,
		json: true,
		headers: idempotencyKey ? { 'Idempotency-Key': idempotencyKey } : {},
		// A redirect would turn a POST into a GET: it is told, not followed.
		disableFollowRedirect: true,
		returnFullResponse: true,
		ignoreHttpStatusErrors: true,
	})) as { statusCode: number; body: T };
	if (answer.statusCode >= 200 && answer.statusCode < 300) return answer.body;
	throw refusal(context, answer.statusCode, answer.body, itemIndex);
}

/** Walk through the pages of a list until there are enough items. */
export async function callForAll(context: Context, given: Call, most: number): Promise<IDataObject[]> {
	const items: IDataObject[] = [];
	for (let page = 1; ; page++) {
		const query = { ...given.query, page, limit: Math.min(PAGE, most) };
		const { data, total } = await call<{ data: IDataObject[]; total: number }>(context, { ...given, query });
		items.push(...data);
		if (items.length >= Math.min(total, most) || data.length === 0) return items.slice(0, most);
	}
}

/** Escape an id for a path. An empty one would name the whole collection, and dots would climb out of it. */
export function segment(id: unknown): string {
	if (typeof id !== 'string' || /^\.*$/.test(id.trim())) throw new Error('The ID is empty');
	return encodeURIComponent(id.trim());
}

function refusal(context: Context, status: number, body: unknown, itemIndex: number | undefined): NodeApiError {
	// What lies in front of the service may answer with anything, HTML included.
	const problem = (typeof body === 'object' && body !== null ? body : {}) as IDataObject;
	const fields = ((problem.errors as IDataObject[]) ?? []).map(({ field, detail }) => `${field}: ${detail}`);
	return new NodeApiError(context.getNode(), problem as JsonObject, {
		itemIndex,
		httpCode: String(status),
		message: problem.code ? `${problem.title} (${problem.code})` : `The service answered ${status}`,
		description: [problem.detail ?? 'Check the base URL of the credential.', ...fields].join('\n'),
	});
}
