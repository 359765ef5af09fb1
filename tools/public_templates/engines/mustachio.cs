// Mustachio, the engine of Postmark's templates: a line of JSON in, a line of JSON out.
// https://github.com/ActiveCampaign/mustachio
using System;
using System.Collections;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Web.Script.Serialization;
using Mustachio;

public static class Program
{
    public static void Main()
    {
        Console.InputEncoding = Console.OutputEncoding = new UTF8Encoding(false);
        var json = new JavaScriptSerializer { MaxJsonLength = int.MaxValue };
        for (string line; (line = Console.ReadLine()) != null;)
            Console.WriteLine(json.Serialize(Answer(json.Deserialize<Dictionary<string, object>>(line))));
    }

    static Dictionary<string, object> Answer(Dictionary<string, object> request)
    {
        try
        {
            var options = new ParsingOptions { DisableContentSafety = !(bool)request["html"] };
            var parsed = Parser.ParseWithModelInference((string)request["source"], options);
            var text = parsed.ParsedTemplate((IDictionary<string, object>)Plain(request["model"]));
            var model = parsed.InferredModel.GetModelRepresentation();
            return new Dictionary<string, object> { { "text", text }, { "model", model } };
        }
        catch (Exception error)
        {
            return new Dictionary<string, object> { { "error", error.ToString() } };
        }
    }

    static object Plain(object value)
    {
        if (value is IDictionary<string, object> values)
            return values.ToDictionary(pair => pair.Key, pair => Plain(pair.Value));
        if (value is IEnumerable items && !(value is string))
            return items.Cast<object>().Select(Plain).ToList();
        return value;
    }
}
