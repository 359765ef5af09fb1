import type { Query, RequestOptions, Transport } from "../transport.js";
import type { FeedEvent, FeedEventType } from "../types.js";

export interface StreamFilters {
  /** The cursor of the last event that you have, or `latest`. */
  after?: string;
  /** Only these events. */
  types?: FeedEventType[];
}

export interface EventFilters extends StreamFilters {
  /** Events per page, at most 500. */
  limit?: number;
}

export interface EventPage {
  data: FeedEvent[];
  /** Pass it as `after` to continue, also if the page is empty. */
  cursor: string;
  /** Whether later events exist already. */
  hasMore: boolean;
}

/** Events until now, oldest first: `await` it for one page, or iterate over all of them with `for await`. */
export class EventList implements PromiseLike<EventPage>, AsyncIterable<FeedEvent> {
  readonly #fetchPage: (changes: Query) => Promise<EventPage>;

  constructor(fetchPage: (changes: Query) => Promise<EventPage>) {
    this.#fetchPage = fetchPage;
  }

  then<A = EventPage, B = never>(
    fulfilled?: ((page: EventPage) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#fetchPage({}).then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<FeedEvent> {
    let page = await this.#fetchPage({});
    yield* page.data;
    while (page.hasMore) {
      page = await this.#fetchPage({ after: page.cursor });
      yield* page.data;
    }
  }
}

export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(filters: EventFilters = {}, options?: RequestOptions): EventList {
    return new EventList((changes) => {
      return this.#transport.json({ method: "GET", path: ["events"], query: { ...filters, ...changes }, options });
    });
  }

  /**
   * Yield events when they occur, by default from now on, until the server closes the connection.
   *
   * It does so after an hour at the latest. To continue, call `stream` again with the cursor of the last event.
   * Without events the server sends a heartbeat every 15 seconds: `timeoutMs` must be longer.
   */
  async *stream(filters: StreamFilters = {}, options?: RequestOptions): AsyncGenerator<FeedEvent, void, undefined> {
    const call = { method: "GET", path: ["events", "stream"], query: { ...filters }, options } as const;
    for await (const line of this.#transport.lines(call)) {
      // The server sends each event as one line of data. Other lines repeat its cursor and type.
      if (line.startsWith("data:")) yield JSON.parse(line.slice("data:".length)) as FeedEvent;
    }
  }
}
